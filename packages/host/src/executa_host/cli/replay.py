"""`executa replay`: one side of a transcript, played again, up to the first difference."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from executa_host.cli import exits
from executa_host.cli.detect import find_plugin
from executa_host.cli.faults import ending
from executa_host.cli.output import Screen, tell, write_json
from executa_host.cli.running import run
from executa_host.cli.working import working
from executa_host.replaying.as_host import Played, play_host
from executa_host.replaying.comparing import MISSING
from executa_host.replaying.launches import Launch, launches_of, plugin_of
from executa_host.replaying.player import sentence
from executa_host.transcripts.reading import Transcript, read_transcript
from executa_protocol.errors import UsageError


def replay(
    file: Annotated[Path, Parameter(help="The transcript, as --record wrote it.")],
    /,
    *command: Annotated[
        str, Parameter(help="The plugin: its folder, its file, or its command after --.")
    ],
    plugin: Annotated[str, Parameter(help="Which plugin, if the transcript has several.")] = "",
    timeout: Annotated[
        float,
        Parameter(help="Seconds for each next line, beyond what it took when it was recorded."),
    ] = 30.0,
    ignore: Annotated[
        tuple[str, ...],
        Parameter(help="Paths that may differ, such as 'result.data.*'. May be given again."),
    ] = (),
    json: Annotated[bool, Parameter(help="Print one JSON object.")] = False,
) -> int:
    """Play the host's side of a transcript against a plugin, and tell the first difference.

    Generated ids, times, durations, redacted values and the order of concurrent frames are left
    aside; a launch that was killed is played up to there. Exit code 0 is no difference, 1 one.
    """
    with ending(json=json):
        if not timeout > 0:
            raise UsageError("--timeout: expected more than 0 seconds")
        if not command:
            raise UsageError(
                "name the plugin to replay against after --, such as -- python plugin.py"
            )
        found = read_transcript(file)
        launches = launches_of(found)
        name = plugin_of(launches, plugin)
        wanted = [launch for launch in launches if launch.plugin == name]
        spec = find_plugin(command, name=name)
        with working(quiet=json) as shown:
            shown.on(f"{name} is played to")
            played = run(play_host(wanted, spec, timeout=timeout, ignored=ignore))
    _report(found, name, wanted, played, json=json)
    return exits.OK if played.verdict is None else exits.FAILED


def _report(
    found: Transcript, name: str, wanted: list[Launch], played: Played, *, json: bool
) -> None:
    if json:
        write_json(_document(found, name, played))
        return
    for remark in found.remarks:
        tell(remark, style="yellow")
    counted = f"{played.launches} of {len(wanted)} launches, {played.frames:,} frames"
    console = Screen(highlight=False)
    if played.verdict is None:
        console.print(f"{name}: no difference in {counted}", style="green", markup=False)
    else:
        console.print(f"{name}: a difference in {counted}", style="bold red", markup=False)
        console.print(sentence(played.verdict), markup=False, soft_wrap=True)


def _document(found: Transcript, name: str, played: Played) -> dict[str, Any]:
    document: dict[str, Any] = {
        "ok": played.verdict is None,
        "plugin": name,
        "launches": played.launches,
        "frames": played.frames,
        "cut": found.cut,
        "remarks": found.remarks,
        "difference": None,
    }
    if played.verdict is not None:
        verdict, difference = played.verdict, played.verdict.difference
        document["difference"] = {
            "launch": verdict.launch,
            "line": verdict.row,
            "frame": verdict.frame,
            "path": difference.path,
            **({} if verdict.got is MISSING else {"in": verdict.got}),
            **{
                side: value
                for side, value in (("expected", difference.expected), ("got", difference.got))
                if value is not MISSING
            },
        }
    return document
