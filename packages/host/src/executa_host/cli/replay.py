"""`executa replay`: one side of a transcript, played again, up to the first difference."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from executa_host.cli import exits
from executa_host.cli.detect import find_plugin
from executa_host.cli.faults import ending
from executa_host.cli.nexus_options import DEFAULT, NexusOptions
from executa_host.cli.output import Screen, tell, write_json
from executa_host.cli.replay_hosts import play_to_command, play_to_host, play_to_stdio
from executa_host.cli.running import run
from executa_host.cli.working import working
from executa_host.replaying.as_host import Played, play_host
from executa_host.replaying.as_plugin import Report
from executa_host.replaying.comparing import MISSING
from executa_host.replaying.launches import Launch, launches_of, plugin_of
from executa_host.replaying.verdicts import sentence
from executa_host.transcripts.reading import Transcript, read_transcript
from executa_protocol import codec
from executa_protocol.errors import UsageError

DEFAULT_TIMEOUT: Final = 30.0


def replay(
    file: Annotated[Path, Parameter(help="The transcript, as --record wrote it.")],
    /,
    *command: Annotated[
        str,
        Parameter(
            help="The plugin: its folder, its file, or its command after --. With --side plugin "
            "the command of a host, {plugin} in it standing for the plugin; none is our own host."
        ),
    ],
    plugin: Annotated[str, Parameter(help="Which plugin, if the transcript has several.")] = "",
    side: Annotated[
        Literal["host", "plugin"], Parameter(help="Whose side is played; the other is tested.")
    ] = "host",
    timeout: Annotated[
        float,
        Parameter(help="Seconds for each next line, beyond what it took when it was recorded."),
    ] = DEFAULT_TIMEOUT,
    ignore: Annotated[
        tuple[str, ...],
        Parameter(help="Paths that may differ, such as 'result.data.*'. May be given again."),
    ] = (),
    stdio: Annotated[
        bool, Parameter(help="Be the plugin on standard input and output, for a host to start.")
    ] = False,
    report: Annotated[
        Path | None, Parameter(help="With --stdio: a folder for reports, a launch each.")
    ] = None,
    json: Annotated[bool, Parameter(help="Print one JSON object.")] = False,
    options: NexusOptions = DEFAULT,
) -> int:
    """Play one side of a transcript against the other, and tell the first difference.

    By default the host's side is played against a plugin. Generated ids, times, durations,
    redacted values and the order of concurrent frames are left aside; a launch that was killed
    is played up to there. Exit code 0 is no difference, 1 one, 3 a plugin that ended early.
    """
    with ending(json=json):
        if not timeout > 0:
            raise UsageError("--timeout: expected more than 0 seconds")
        if stdio and side != "plugin":
            raise UsageError("--stdio is for --side plugin")
        found = read_transcript(file)
        launches = launches_of(found)
        if stdio:
            wanted = _of(launches, plugin)
            return play_to_stdio(wanted, report, timeout=timeout, ignored=ignore)
        with working(quiet=json) as shown:
            shown.on(f"{file.name} is played")
            if side == "host":
                wanted = _of(launches, plugin)
                if not command:
                    msg = "name the plugin to replay against, such as -- python plugin.py"
                    raise UsageError(msg)
                spec = find_plugin(command, name=wanted[0].plugin)
                played = run(play_host(wanted, spec, timeout=timeout, ignored=ignore))
                return _told_played(found, wanted, played, json=json)
            if command:
                wanted = _of(launches, plugin)
                reports = play_to_command(found, wanted, command, timeout=timeout, ignored=ignore)
            else:
                wanted = launches if not plugin else _of(launches, plugin)
                reports = run(play_to_host(found, options, timeout=timeout, ignored=ignore))
                reports = [each for each in reports if each.plugin in {w.plugin for w in wanted}]
    return _told_reports(found, wanted, reports, json=json)


def _of(launches: list[Launch], plugin: str) -> list[Launch]:
    name = plugin_of(launches, plugin)
    return [launch for launch in launches if launch.plugin == name]


# --- What came of it ---------------------------------------------------------------------------


def _told_played(found: Transcript, wanted: list[Launch], played: Played, *, json: bool) -> int:
    """The host's side has been played."""
    difference: dict[str, Any] | None = None
    text = ""
    if played.verdict is not None:
        verdict, each = played.verdict, played.verdict.difference
        difference = {
            "launch": verdict.launch,
            "line": verdict.row,
            "frame": verdict.frame,
            "path": each.path,
        }
        sides = (("expected", each.expected), ("got", each.got), ("in", verdict.got))
        difference |= {name: value for name, value in sides if value is not MISSING}
        text = sentence(verdict)
    name = wanted[0].plugin
    _tell(found, name, (played.launches, len(wanted), played.frames), difference, text, json=json)
    return exits.OK if difference is None else exits.FAILED


def _told_reports(
    found: Transcript, wanted: list[Launch], reports: list[Report], *, json: bool
) -> int:
    """The plugin's side has been played, and replayers have reported."""
    first = min((each for each in reports if each.text), key=lambda each: each.row, default=None)
    name = ", ".join(dict.fromkeys(launch.plugin for launch in wanted))
    unplayed = len(wanted) - sum(each.whole for each in reports)
    difference: dict[str, Any] | None = None
    text = ""
    if first is not None:
        difference = {
            "plugin": first.plugin,
            "launch": first.launch,
            "line": first.row,
            "frame": first.frame,
            "path": first.path,
        }
        for side, value in (("expected", first.expected), ("got", first.got)):
            if value:
                difference[side] = _decoded(value)
        text = f"{first.plugin}, {first.text}"
    elif unplayed:
        text = f"{unplayed} of {len(wanted)} launches were not played to their end by the host"
        difference = {"frame": text, "path": ""}
    counts = (len(reports), len(wanted), sum(each.frames for each in reports))
    _tell(found, name, counts, difference, text, json=json)
    return exits.OK if difference is None else exits.FAILED


def _tell(
    found: Transcript,
    name: str,
    counts: tuple[int, int, int],
    difference: dict[str, Any] | None,
    text: str,
    *,
    json: bool,
) -> None:
    launches, wanted, frames = counts
    if json:
        write_json(
            {
                "ok": difference is None,
                "plugin": name,
                "launches": launches,
                "frames": frames,
                "cut": found.cut,
                "remarks": found.remarks,
                "difference": difference,
            }
        )
        return
    for remark in found.remarks:
        tell(remark, style="yellow")
    counted = f"{launches} of {wanted} launches, {frames:,} frames"
    console = Screen(highlight=False)
    if difference is None:
        console.print(f"{name}: no difference in {counted}", style="green", markup=False)
    else:
        console.print(f"{name}: a difference in {counted}", style="bold red", markup=False)
        console.print(text, markup=False, soft_wrap=True)


def _decoded(text: str) -> Any:
    try:
        return codec.decode_any(text.encode())
    except ValueError:
        return text
