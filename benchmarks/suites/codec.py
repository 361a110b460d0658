"""Suite `codec`: JSON in and out, on the messages that matter, answers compared as JSON."""

import json
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw, Struct

from benchmarks.contenders.direct_nexus import prepared_frames
from benchmarks.drivers.contender import text
from benchmarks.model import Report, WrongAnswer
from benchmarks.rounds import alternate, ratio
from benchmarks.scale import Scale
from benchmarks.timing import work
from executa_protocol import codec, envelope
from executa_protocol.envelope import Message
from executa_protocol.runs import read_run_answer

FRAMES: Final = 4_096
RUN_ID: Final = "0123456789abcdef0123456789abcdef"

UNCHECKED: Final = "executa, without the line's check"
CHECK: Final = "executa, the line's check alone"

Way = Callable[[bytes], bytes]
"""A line in, and the same message out as a line."""


class _Bare(Struct):
    """An answer as `msgspec` alone reads it: no look at what it passes through."""

    id: int
    jsonrpc: str
    result: Raw


_BARE: Final = msgspec.json.Decoder(_Bare)
_ENCODER: Final = msgspec.json.Encoder()


async def run(scale: Scale) -> Report:
    """An agent run of 4,096 frames and an invoke, decoded, checked and encoded, over json."""
    report = Report("codec")
    frames = FRAMES if scale.size > 0.1 else 64
    whole: dict[str, Way] = {
        "executa": run_ours,
        UNCHECKED: run_unchecked,
        CHECK: check_alone,
        "json": run_json,
        "msgspec, unchecked": bare,
    }
    condition = f"a run of {frames:,} frames"
    line = run_line(frames)
    await _measure(whole, line, scale, report, condition=condition, key="over_json")
    small: dict[str, Way] = {"executa": request_ours, "json": request_json}
    condition = "an invoke of 200 B"
    await _measure(small, request_line(), scale, report, condition=condition, key="small_over_json")
    return report


async def _measure(
    ways: dict[str, Way], line: bytes, scale: Scale, report: Report, *, condition: str, key: str
) -> None:
    expected: object = json.loads(line)
    trials = [
        work(
            name,
            lambda way=way: way(line),
            lambda way=way: json.loads(way(line)) == expected,
            scale.seconds / 2,
            size=len(line),
        )
        for name, way in ways.items()
    ]
    series = await alternate(condition, trials, scale.rounds, report)
    ours, theirs = (series.values(name, "cpu_us") for name in ("executa", "json"))
    ratio(report, key, f"{condition}: our bytes a CPU second over json's", theirs, ours)
    for name, part in ((UNCHECKED, "unchecked"), (CHECK, "check")):
        title = f"{condition}: the same of {name.removeprefix('executa, ')}"
        ratio(report, f"{part}_{key}", title, theirs, series.values(name, "cpu_us"))


def run_line(frames: int) -> bytes:
    """The answer to `agent/session.run` as it stands on the line."""
    listed = prepared_frames(frames)
    result = b'{"run_id":"%b","frames":[%b],"final":%b}' % (
        RUN_ID.encode(),
        b",".join(listed),
        listed[-1],
    )
    return envelope.result_frame(12_345, result)


def request_line() -> bytes:
    """An `invoke` as it stands on the line."""
    params = {
        "tool": "echo",
        "arguments": {"text": text(1, 200)},
        "context": {"invoke_id": RUN_ID, "deadline_ms": 1_790_000_000_000},
        "invoke_id": RUN_ID,
    }
    return envelope.request_frame(12_345, "invoke", codec.encode(params))


def run_ours(line: bytes) -> bytes:
    """What host or plugin do: the line checked, each event checked, the frames passed on."""
    message = _message(line)
    assert isinstance(message.id, int)
    assert message.result is not UNSET
    return envelope.result_frame(message.id, read_run_answer(message.result).encode())


def run_unchecked(line: bytes) -> bytes:
    """`run_ours` for a line that somebody has checked: what the check costs is the difference."""
    message = _BARE.decode(line)
    return envelope.result_frame(message.id, read_run_answer(message.result).encode())


def check_alone(line: bytes) -> bytes:
    """UTF-8, depth and the size of numbers (R-14), which `json` looks at in part."""
    codec.check_content(line)
    return line


def run_json(line: bytes) -> bytes:
    """The same with the standard library, as compact as it writes."""
    message: dict[str, Any] = json.loads(line)
    result = message["result"]
    frames = cast("list[dict[str, Any]]", result["frames"])
    if not all(type(frame["event"]) is str for frame in frames):
        msg = "a frame has no event"
        raise WrongAnswer(msg)
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def bare(line: bytes) -> bytes:
    """The least that msgspec does: the result goes through unread."""
    return _ENCODER.encode(_BARE.decode(line)) + b"\n"


def request_ours(line: bytes) -> bytes:
    """A request parsed, its params decoded, and written again."""
    message = _message(line)
    assert isinstance(message.id, int)
    assert message.method is not UNSET
    assert message.params is not UNSET
    params = codec.decode_any(message.params)
    return envelope.request_frame(message.id, message.method, codec.encode(params))


def request_json(line: bytes) -> bytes:
    """The same with the standard library."""
    return json.dumps(json.loads(line), separators=(",", ":")).encode() + b"\n"


def _message(line: bytes) -> Message:
    message = envelope.parse(line)
    if not isinstance(message, Message):
        msg = f"the line was not read: {message!r:.120}"
        raise WrongAnswer(msg)
    return message
