"""The plugin's side of a replay: for our own host, for a command, or for whoever starts it."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from executa_host.cli import exits
from executa_host.cli.nexus_options import NexusOptions
from executa_host.cli.running import run
from executa_host.replaying.as_plugin import Report, claim_launch, leave, play_plugin, read_reports
from executa_host.replaying.driving import Drive, drive
from executa_host.replaying.launches import Launch
from executa_host.transcripts.reading import Transcript
from executa_protocol.errors import UsageError

PLACE: Final = "{plugin}"
"""The word of a host's command that stands for the plugin's command."""

BOUND: Final = 600.0
"""Seconds that a host's command may take at most."""


def play_to_stdio(
    launches: Sequence[Launch], folder: Path | None, *, timeout: float, ignored: Sequence[str]
) -> int:
    """Be the next launch of a plugin on standard input and output; its exit code."""
    launch, path = claim_launch(launches, folder)
    report = run(play_plugin(launch, timeout=timeout, ignored=ignored))
    if path is not None:
        path.write_bytes(msgspec.json.encode(report))
    return leave(launch, report)


async def play_to_host(
    found: Transcript, options: NexusOptions, *, timeout: float, ignored: tuple[str, ...]
) -> list[Report]:
    """Have our own host make the recorded calls. Raises `exits.Stop`, `UsageError`."""
    with tempfile.TemporaryDirectory(prefix="executa-replay-") as folder:
        how = Drive(timeout=timeout, ignored=ignored, folder=Path(folder))
        return await drive(found, lambda: options.open(""), how)


def play_to_command(
    found: Transcript,
    launches: Sequence[Launch],
    command: Sequence[str],
    *,
    timeout: float,
    ignored: Sequence[str],
) -> list[Report]:
    """Run a host whose plugin is the replayer. Raises `exits.Stop` and `UsageError`."""
    if PLACE not in command:
        msg = f"the host's command needs the word {PLACE} where the plugin's command belongs"
        raise UsageError(msg)
    with tempfile.TemporaryDirectory(prefix="executa-replay-") as folder:
        replayer = [sys.executable, "-P", "-m", "executa_host.cli", "replay"]
        replayer += [str(found.path.absolute()), "--side", "plugin", "--stdio", "--report", folder]
        replayer += ["--plugin", launches[0].plugin, "--timeout", str(timeout)]
        for path in ignored:
            replayer += ["--ignore", path]
        words = [part for word in command for part in (replayer if word == PLACE else [word])]
        try:
            subprocess.run(  # noqa: S603 - running the given command is the purpose
                words, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=BOUND, check=False
            )
        except OSError as fault:
            msg = f"{words[0]} could not be started: {fault.strerror}"
            raise exits.Stop(msg, exits.USAGE) from None
        except subprocess.TimeoutExpired:
            msg = f"the host did not end within {BOUND:g} s"
            raise exits.Stop(msg, exits.FAILED) from None
        reports = read_reports(Path(folder))
    if not reports:
        raise exits.Stop("the host never started its plugin", exits.FAILED)
    return reports
