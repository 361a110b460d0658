"""``python -m benchmarks``: list the suites, run them, compare runs, report them."""

import sys
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter
from rich.console import Console

from benchmarks import arguments, suites, tables
from benchmarks.comparing import show_changes
from benchmarks.execution import execute
from benchmarks.goals import exit_code
from benchmarks.model import Document, Unreadable, decode, encode
from benchmarks.reporting import REPORT, REPORT_FIGURES, write_report
from benchmarks.scale import SEED, Scale

STANDARD_OUTPUT: Final = "-"

app = App(
    name="python -m benchmarks",
    help="Benchmarks that check every answer.",
    suppress_keyboard_interrupt=False,
)


@app.command(name="list")
def list_suites() -> None:
    """List the suites with a line each."""
    console = tables.console()
    for name in suites.NAMES:
        line = f"{name:<12} {suites.describe(name)}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)


@app.command
def run(
    *names: Annotated[str, Parameter(help="Suites to run; all without any.")],
    quick: Annotated[
        bool, Parameter(negative="", help="Few and short rounds: under three minutes for all.")
    ] = False,
    json: Annotated[
        str, Parameter(help="Write JSON to this file, or to standard output without one.")
    ] = "",
) -> int:
    """Run suites, print their tables, and hold them against the goals.

    The exit code is 1 if an answer was wrong, or if a full run misses a must (of suites that
    are named, contenders that are not installed apart); 2 for a suite that there is not.
    """
    console = tables.console(stderr=json == STANDARD_OUTPUT)
    unknown = [name for name in names if name not in suites.NAMES]
    if unknown:
        told = f"no suite is named {unknown[0]!r}; there are {', '.join(suites.NAMES)}"
        Console(stderr=True).print(told, highlight=False, markup=False, soft_wrap=True)
        return 2
    scale = Scale.quick() if quick else Scale()
    document = execute(names or suites.NAMES, scale, console)
    tables.show_goals(console, document)
    _keep(document, json, console)
    return exit_code(document, chosen=bool(names))


@app.command
def compare(
    before: Path,
    after: Path,
    /,
    *,
    everything: Annotated[
        bool, Parameter(name="--all", negative="", help="Also what did not change.")
    ] = False,
) -> int:
    """Compare two runs: what changed between their JSON files, spreads apart.

    The exit code is 2 if a file cannot be read.
    """
    console = tables.console()
    documents = [_read(path) for path in (before, after)]
    first, second = documents
    if first is None or second is None:
        return 2
    show_changes(console, first, second, everything=everything)
    return 0


@app.command
def report(
    figures: Annotated[Path, Parameter(help="The JSON of a run.")] = REPORT_FIGURES,
    *,
    output: Annotated[Path, Parameter(help="The document to write.")] = REPORT,
) -> int:
    """Write the document with tables and plots from a run's JSON.

    The plots stand in a folder of the document's name beside it. The exit code is 2 if the
    file cannot be read.
    """
    document = _read(figures)
    if document is None:
        return 2
    for path in write_report(document, output):
        tables.console().print(f"wrote {path}", highlight=False, markup=False, soft_wrap=True)
    return 0


@app.command
def soak(
    *,
    plugins: Annotated[int, Parameter(help="How many plugins run side by side.")] = 50,
    seconds: Annotated[float, Parameter(help="How long the load lasts.")] = 60.0,
    seed: Annotated[int, Parameter(help="Of the kills, time-outs and cancels.")] = SEED,
    json: Annotated[bool, Parameter(negative="", help="Print one JSON object.")] = False,
) -> int:
    """Load a host with many plugins, kills, time-outs and cancels; nothing may be lost."""
    from benchmarks.soak import run_soak  # noqa: PLC0415 - brings the host along

    return run_soak(plugins, seconds, seed=seed, json=json)


def _read(path: Path) -> Document | None:
    """The document of a file; None, having told, if it is none."""
    try:
        return decode(path.read_bytes())
    except (OSError, Unreadable) as fault:
        why = fault.strerror if isinstance(fault, OSError) else fault
        told = f"{path}: {why}"
        Console(stderr=True).print(told, highlight=False, markup=False, soft_wrap=True)
        return None


def _keep(document: Document, json: str, console: Console) -> None:
    if json == STANDARD_OUTPUT:
        sys.stdout.buffer.write(encode(document))
        sys.stdout.buffer.flush()
    elif json:
        Path(json).write_bytes(encode(document))
        console.print(f"the figures are in {json}", highlight=False, markup=False)


def main(tokens: list[str] | None = None) -> int:
    """The exit code of a command line."""
    given = sys.argv[1:] if tokens is None else tokens
    try:
        result = app(arguments.spelled_out(given), result_action="return_value")
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted: no figures were kept", highlight=False)
        return 130
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
