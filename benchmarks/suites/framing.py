"""Suite `framing`: bytes to lines, over asyncio's reader and the least that a machine needs."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, cast

from msgspec import Struct

from benchmarks.model import Report
from benchmarks.rounds import alternate, ratio
from benchmarks.scale import SEED, Scale
from benchmarks.timing import at_once, work
from executa_protocol.framing import LineSplitter
from executa_protocol.limits import MAX_LINE, READ_CHUNK

READUNTIL: Final = "StreamReader.readuntil"
BOUND: Final = "memcpy and memchr"

STREAM: Final = 8 * 1_048_576
"""Bytes of a stream at most: more than the caches near a core hold."""

FRAMES: Final = 8_192
"""Frames of a stream at most: short ones need no megabytes."""

Sink = Callable[[Iterable[bytes]], object]
"""Takes lines as they come: a list's `extend` to check them, else what lets go at once."""


class Frames(Struct, frozen=True):
    """Frames of `size` bytes: as one stream, and as the chunks that a pipe is read in.

    `ends` are how many lines end in each chunk.
    """

    size: int
    name: str
    key: str
    stream: bytes
    lines: list[bytes]
    chunks: list[bytes]
    ends: list[int]


async def run(scale: Scale) -> Report:
    """Lines of 100 B to 1 MiB out of a stream, over asyncio's reader, and over memcpy."""
    report = Report("framing")
    for size, name, key in (
        (100, "100 B", "100"),
        (1_024, "1 KiB", "1k"),
        (65_536, "64 KiB", "64k"),
        (1_048_576, "1 MiB", "1m"),
    ):
        await _one_size(frames_of(size, name, key, scale), scale, report)
    return report


async def _one_size(frames: Frames, scale: Scale, report: Report) -> None:
    ways: dict[str, Callable[[Frames, Sink], None]] = {
        "executa": split,
        READUNTIL: read_until,
        BOUND: find_and_slice,
    }
    trials = [
        work(
            name,
            lambda way=way: way(frames, deque[bytes](maxlen=0).extend),
            lambda way=way: _lines(way, frames) == frames.lines,
            scale.seconds / 2,
            count=len(frames.lines),
            size=len(frames.stream),
        )
        for name, way in ways.items()
    ]
    series = await alternate(f"{frames.name} frames", trials, scale.rounds, report)
    ours = series.values("executa", "cpu_us")
    for peer, key in ((READUNTIL, "readuntil"), (BOUND, "bound")):
        theirs = series.values(peer, "cpu_us")
        title = f"{frames.name} frames: our bytes a CPU second over {peer}"
        ratio(report, f"over_{key}_{frames.key}", title, theirs, ours)


def frames_of(size: int, name: str, key: str, scale: Scale) -> Frames:
    """Frames of printable bytes, the same in every run.

    With its LF a frame is one byte longer than its size, so that frames and chunks do not
    begin together for long.
    """
    count = max(2, min(STREAM // size, scale.part(FRAMES)))
    dice = random.Random(SEED)  # noqa: S311 - no secret
    body = bytes(dice.choices(range(32, 127), k=min(size, 65_536)))
    whole = (body * (size // len(body) + 1))[: size - 8]
    lines = [b"%08d" % number + whole + b"\n" for number in range(count)]
    stream = b"".join(lines)
    chunks = [stream[at : at + READ_CHUNK] for at in range(0, len(stream), READ_CHUNK)]
    ends = [chunk.count(b"\n") for chunk in chunks]
    return Frames(size, name, key, stream, lines, chunks, ends)


def split(frames: Frames, sink: Sink) -> None:
    """Our splitter, chunk by chunk."""
    splitter = LineSplitter()
    for chunk in frames.chunks:
        sink(cast("list[bytes]", splitter.feed(chunk)))  # none is over the cap


def read_until(frames: Frames, sink: Sink) -> None:
    """asyncio's reader, told of each chunk and asked for as many lines as it then has."""
    at_once(_read_until(frames, sink))


async def _read_until(frames: Frames, sink: Sink) -> None:
    reader = asyncio.StreamReader(limit=MAX_LINE)
    for chunk, ends in zip(frames.chunks, frames.ends, strict=True):
        reader.feed_data(chunk)
        for _ in range(ends):
            sink((await reader.readuntil(b"\n"),))


def find_and_slice(frames: Frames, sink: Sink) -> None:
    """The bound: the stream lies there whole; each byte is looked at once and copied once."""
    stream, at = frames.stream, 0
    while end := stream.find(b"\n", at) + 1:
        sink((stream[at:end],))
        at = end


def _lines(way: Callable[[Frames, Sink], None], frames: Frames) -> list[bytes]:
    found: list[bytes] = []
    way(frames, found.extend)
    return found
