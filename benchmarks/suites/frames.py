"""Suite `frames`: what a host does with the frames of a run, from nexus's stream to one answer."""

import json
from typing import Any, Final

from benchmarks.contenders.direct_nexus import prepared_frames
from benchmarks.model import Report, WrongAnswer
from benchmarks.rounds import alternate, figure, ratio
from benchmarks.scale import Scale
from benchmarks.timing import work
from executa_protocol.normaliser import FrameNormaliser
from executa_protocol.runs import RunBuffer

FRAMES: Final = 4_096
EVENTS: Final = frozenset({"delta", "tool_call", "tool_result", "final"})


async def run(scale: Scale) -> Report:
    """4,096 frames checked, normalised, buffered and encoded, over json; other spellings too."""
    report = Report("frames")
    frames = prepared_frames(FRAMES if scale.size > 0.1 else 64)
    tagged = [b'{"seq":%d,' % place + frame[1:] for place, frame in enumerate(frames)]
    expected = {"run_id": "r", "frames": [json.loads(frame) for frame in frames]}
    expected["final"] = expected["frames"][-1]
    size = sum(map(len, frames))
    trials = [
        work(name, lambda way=way, given=given: way(given),
             lambda way=way, given=given: json.loads(way(given)) == expected,
             scale.seconds / 2, count=len(frames), size=size)
        for name, way, given in (
            ("executa", buffer_ours, list(frames)),
            ("executa, with seq", buffer_ours, tagged),
            ("json", buffer_json, list(frames)),
        )
    ]  # fmt: skip
    condition = f"a run of {len(frames):,} frames"
    series = await alternate(condition, trials, scale.rounds, report)
    each, theirs = (series.values(name, "cpu_us") for name in ("executa", "json"))
    ratio(report, "over_json", f"{condition}: our bytes a CPU second over json's", theirs, each)
    figure(report, "cpu_a_frame", "CPU of the host for one frame", each, unit="µs")
    return report


def buffer_ours(frames: list[bytes]) -> bytes:
    """As the host does: normalise each frame, keep it, and encode the answer at the end."""
    normaliser, buffer = FrameNormaliser(), RunBuffer("r")
    for raw in frames:
        for frame in normaliser.feed(raw):
            buffer.add(frame)
    return buffer.encode()


def buffer_json(frames: list[bytes]) -> bytes:
    """The same with the standard library: decode each, look at its event, encode all."""
    kept: list[dict[str, Any]] = []
    for raw in frames:
        frame: dict[str, Any] = json.loads(raw)
        if frame["event"] not in EVENTS:
            msg = "a frame has no event"
            raise WrongAnswer(msg)
        kept.append(frame)
    answer = {"run_id": "r", "frames": kept, "final": kept[-1]}
    return json.dumps(answer, separators=(",", ":")).encode()
