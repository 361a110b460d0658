"""What `executa dev` shows: for a person lines and colours, for a program one JSON object each.

Results go to standard output, everything else to stderr, so that a pipe gets the results
alone.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from executa_host.cli import exits
from executa_host.cli.faults import advice, exit_code, told
from executa_host.cli.output import Screen, harmless, write_json
from executa_host.cli.timeline import Timeline
from executa_host.cli.working import Working, indented, odd, working
from executa_host.restart import describe_exit
from executa_protocol import transcript
from executa_protocol.errors import CallTimeout, ExecutaError
from executa_protocol.transcript import AnyEvent

_CALLS: Final = (
    transcript.ReverseEnded,
    transcript.RunFrame,
    transcript.ToolExecuted,
    transcript.CancelEnded,
)
_SIGNS: Final = {"+": "green", "-": "red", "~": "yellow"}


class Show:
    """What is seen. With `json` for a program."""

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self.out = Screen(highlight=False)
        self._err = Screen(stderr=True, highlight=False)
        self._console: Console = self._err
        self._timeline: Timeline | None = None

    # --- What was asked for -----------------------------------------------------------------

    def result(self, document: dict[str, Any], draw: Callable[[Console], object]) -> None:
        """What a command gave."""
        if self.json:
            write_json(document)
        else:
            draw(self.out)

    def fault(self, fault: Exception) -> int:
        """Why a command failed; its exit code."""
        code = exits.FAILED
        if isinstance(fault, ExecutaError):
            code = exit_code(fault)
        elif isinstance(fault, exits.Stop):
            code = fault.code
        if self.json:
            write_json(told(fault))
        else:
            text = str(fault)
            if isinstance(fault, ExecutaError) and not isinstance(fault, CallTimeout):
                text = advice(fault)  # which for a call that was too slow is an option of others
            self._say(text, "red")
        return code

    # --- What happens -------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Something worth a sentence."""
        if not self.json:
            self._say(text, "bold yellow")

    def hint(self, text: str) -> None:
        """Something beside the point."""
        if not self.json:
            self._say(text, "dim")

    def warn(self, text: str) -> None:
        """Something that is not as it should be."""
        if not self.json:
            self._say(text, "yellow")

    def changed(self, lines: list[str]) -> None:
        """What is different in the manifest."""
        if self.json:
            write_json({"event": "reloaded", "changes": lines})
            return
        for line in lines or ["the manifest is as it was"]:
            self._say(f"  {line}", _SIGNS.get(line[:1], "dim"))

    def trace(self, event: AnyEvent) -> None:
        """An event of the host; a follower."""
        if self.json:
            return
        if isinstance(event, transcript.Stderr):
            self._say(indented(event.line), "dim")
        elif isinstance(event, transcript.Noise):
            self._say(odd(event), "yellow")
        elif isinstance(event, transcript.Exited) and not event.rung:
            self._say(f"the plugin {describe_exit(event.code)}", "red")
        elif isinstance(event, _CALLS) and self._timeline is not None:
            self._timeline.show(event)

    @contextmanager
    def running(self, what: str) -> Generator[Working]:
        """Something runs in the block: a spinner, and below it the calls that it makes."""
        with working(quiet=self.json) as shown:
            shown.on(what)
            self._console = shown.console
            self._timeline = Timeline(shown.console, time.time())
            try:
                yield shown
            finally:
                self._console, self._timeline = self._err, None

    def _say(self, text: str, style: str) -> None:
        self._console.print(Text(harmless(text), style=style), soft_wrap=True)
