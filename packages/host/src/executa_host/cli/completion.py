"""`executa completion`: what a shell needs to complete the command line.

The script is made from the commands as they are installed; cyclopts knows the shells. Making
it imports every command, pressing TAB imports none.
"""

from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from cyclopts import Parameter

from executa_host.cli import exits
from executa_host.cli.output import tell, write_line

# In the order of cyclopts: `typing` takes the one that was there first for both.
Shell = Literal["zsh", "bash", "fish", "powershell"]

_SHELLS: Final = ", ".join(get_args(Shell))


def completion(
    shell: Annotated[
        Shell | None, Parameter(help="Which shell. Default: the one that this runs in.")
    ] = None,
    *,
    install: Annotated[
        bool, Parameter(help="Write it where the shell looks, and its line into the startup file.")
    ] = False,
    output: Annotated[Path | None, Parameter(help="Write it to this file instead.")] = None,
) -> int:
    """Print a shell's completion script, or install it.

    For one shell session: source <(executa completion bash)
    """
    # Not above: the application knows this command, and would import itself.
    from executa_host.cli.app import build  # noqa: PLC0415

    chosen = shell or _own_shell()
    if not install and output is None:
        write_line(build().generate_completion(shell=chosen).rstrip("\n").encode())
        return exits.OK
    try:
        written = build().install_completion(
            shell=chosen, output=output, add_to_startup=output is None
        )
    except OSError as fault:
        raise exits.Stop(f"the completion cannot be written: {fault}", exits.USAGE) from None
    tell(f"wrote {written}; it works in the next {chosen} session", style="green")
    return exits.OK


def _own_shell() -> Shell:
    # Not above: only this command needs it.
    from cyclopts.completion.detect import ShellDetectionError, detect_shell  # noqa: PLC0415

    try:
        return detect_shell()
    except ShellDetectionError:
        msg = f"which shell is this? Name one of {_SHELLS}"
        raise exits.Stop(msg, exits.USAGE) from None
