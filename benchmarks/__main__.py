"""``python -m benchmarks``: list the suites, run them, keep the figures as JSON."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import uvloop
from cyclopts import App, Parameter
from rich.console import Console

from benchmarks import roundtrip, waiting
from benchmarks.harness import Report, Scale, environment
from benchmarks.soak import SEED, run_soak
from benchmarks.tables import show

Suite = Callable[[Scale], Coroutine[Any, Any, Report]]

SUITES: Final[dict[str, Suite]] = {"roundtrip": roundtrip.run, "waiting": waiting.run}

app = App(name="python -m benchmarks", help="Benchmarks that check every answer.")


@app.command(name="list")
def list_suites() -> None:
    """List the suites with a line each."""
    console = Console()
    for name, suite in SUITES.items():
        console.print(f"{name:<12} {(suite.__doc__ or '').splitlines()[0]}")


@app.command
def run(
    *suites: Annotated[str, Parameter(help="Suites to run; all without any.")],
    quick: Annotated[bool, Parameter(negative="", help="Fewer rounds.")] = False,
    json: Annotated[str, Parameter(help="Write JSON to this file, or to stdout with -.")] = "",
) -> int:
    """Run suites, print their tables, and fail if an answer was wrong."""
    unknown = [name for name in suites if name not in SUITES]
    console = Console(stderr=json == "-")
    if unknown:
        console.print(f"no suite is named {unknown[0]!r}; there are {', '.join(SUITES)}")
        return 2
    reports: list[Report] = []
    for name in suites or SUITES:
        with console.status(f"{name}: measuring"):
            reports.append(uvloop.run(_guarded(SUITES[name], Scale.quick() if quick else Scale())))
        show(console, reports[-1])
    document = {"environment": environment(), "quick": quick, "reports": reports}
    encoded = msgspec.json.format(msgspec.json.encode(document), indent=1)
    if json == "-":
        sys.stdout.buffer.write(encoded + b"\n")
    elif json:
        Path(json).write_bytes(encoded + b"\n")
        console.print(f"figures are in {json}")
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
    return run_soak(plugins, seconds, seed=seed, json=json)


async def _guarded(suite: Suite, scale: Scale) -> Report:
    """No suite may hang for ever."""
    async with asyncio.timeout(900):
        return await suite(scale)


if __name__ == "__main__":
    sys.exit(app())
