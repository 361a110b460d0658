"""Suite `sse`: a model's stream of events, parsed and decoded, over httpx-sse and json."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Final

from benchmarks.contenders.direct_nexus import prepared_frames
from benchmarks.extras import extra
from benchmarks.model import Report
from benchmarks.rounds import alternate, missing, ratio
from benchmarks.scale import Scale
from benchmarks.timing import work
from executa_protocol import codec
from executa_protocol.sse import SseParser, encode_event

EVENTS: Final = 4_096
CHUNKS: Final = ((16_384, "16 KiB", ""), (512, "512 B", "_small"))
PEER: Final = "httpx-sse"
NOT_HERE: Final = "left out, or not installed; `uv sync --extra bench` brings it"


async def run(scale: Scale) -> Report:
    """4,096 events in chunks of 16 KiB and of 512 B, each event decoded."""
    report = Report("sse")
    frames = prepared_frames(EVENTS if scale.size > 0.1 else 64)
    stream = b"".join(encode_event(frame) for frame in frames)
    expected = [json.loads(frame) for frame in frames]
    for size, name, suffix in CHUNKS:
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
        condition = f"{name} chunks"
        ways = {"executa": read_ours}
        if not scale.peers or find_spec("httpx_sse") is None:
            missing(report, PEER, NOT_HERE)
        else:
            ways[PEER] = read_httpx_sse
        trials = [
            work(
                way_name,
                lambda way=way, chunks=chunks: sum(1 for _ in way(chunks)),
                lambda way=way, chunks=chunks: list(way(chunks)) == expected,
                scale.seconds / 2,
                count=len(frames),
                size=len(stream),
            )
            for way_name, way in ways.items()
        ]
        series = await alternate(condition, trials, scale.rounds, report)
        ours, theirs = (series.values(peer, "cpu_us") for peer in ("executa", PEER))
        title = f"{condition}: our bytes a CPU second over httpx-sse and json"
        ratio(report, f"over_httpx_sse{suffix}", title, theirs, ours)
    return report


def read_ours(chunks: list[bytes]) -> Iterator[Any]:
    """Our parser, and our decoder on the data as it came."""
    parser = SseParser()
    for chunk in chunks:
        for event in parser.feed(chunk):
            yield codec.decode_any(event.data)


def read_httpx_sse(chunks: list[bytes]) -> Iterator[Any]:
    """httpx-sse over a response of httpx that has the chunks already, and json."""
    httpx, httpx_sse = extra("httpx"), extra("httpx_sse")
    headers = {"content-type": "text/event-stream; charset=utf-8"}
    response = httpx.Response(200, headers=headers, content=iter(chunks))
    for event in httpx_sse.EventSource(response).iter_sse():
        yield json.loads(event.data)
