"""Runs over HTTP: a stream of events as frames, however it is cut, ended or broken."""

import asyncio

import pytest

from executa_host.nexus.http import NexusTimeouts
from executa_protocol.errors import DecodeFailure
from executa_protocol.nexus import NexusError
from executa_protocol.normaliser import FrameNormaliser
from tests.host.nexus_client import (
    DELTA,
    FINAL,
    RUN,
    TOKEN,
    against,
    frames_of,
)
from tests.host.nexus_server import answers, streams
from tests.support.leaks import LeakCheck


async def test_frames_come_as_the_bytes_they_are_however_they_are_cut() -> None:
    stream = b": hello\n\ndata: " + DELTA + b"\r\n\r\nevent: final\ndata: " + FINAL + b"\n\n"
    pieces = [stream[at : at + 7] for at in range(0, len(stream), 7)]
    async with against(streams(*pieces)) as (nexus, server, _):
        assert await frames_of(nexus) == [DELTA, FINAL]
        assert await frames_of(nexus) == [DELTA, FINAL]
        assert len({seen.connection for seen in server.seen}) == 1


async def test_the_streams_own_name_of_an_event_is_put_into_a_frame_without_one() -> None:
    stream = b'event: delta\ndata: {"text":"\\"event\\""}\n\nevent: x\ndata: [DONE]\n\n'
    stream += (
        b'event: x\ndata: {"event":"delta","text":"b"}\n\nevent: x\ndata: {"a":{"event":1}}\n\n'
    )
    async with against(streams(stream)) as (nexus, _, _):
        assert await frames_of(nexus) == [
            b'{"event":"delta","text":"\\"event\\""}',
            b"[DONE]",
            b'{"event":"delta","text":"b"}',
            b'{"event":"x","a":{"event":1}}',
        ]


async def test_a_stream_that_is_cut_gives_its_frames_and_then_an_error() -> None:
    cut = streams(b"data: " + DELTA + b"\n\ndata: {", end="cut")
    async with against(cut) as (nexus, server, _):
        stream = nexus.run_agent(TOKEN, RUN)
        assert await anext(stream) == DELTA
        with pytest.raises(NexusError, match="was cut") as broken:
            await anext(stream)
        assert broken.value.status == 0
        assert len(server.seen) == 1


async def test_a_malformed_event_is_the_normalisers_to_judge() -> None:
    stream = b'data: {"event":"delta","text":"\xff\n\ndata: ' + FINAL + b"\n\n"
    async with against(streams(stream)) as (nexus, _, _):
        broken, final = await frames_of(nexus)
    normaliser = FrameNormaliser()
    with pytest.raises(DecodeFailure):
        normaliser.feed(broken)
    assert normaliser.feed(final)
    assert normaliser.ended


async def test_closing_the_iterator_closes_the_stream() -> None:
    endless = streams(b"data: " + DELTA + b"\n\n", end="never")
    async with against(endless) as (nexus, server, _):
        stream = nexus.run_agent(TOKEN, RUN)
        assert await anext(stream) == DELTA
        assert nexus.in_flight == 1
        await stream.aclose()
        await asyncio.wait_for(server.gone.wait(), 5)


async def test_a_cancelled_reader_closes_the_stream() -> None:
    endless = streams(b"data: " + DELTA + b"\n\n", end="never")
    async with against(endless) as (nexus, server, _):
        reading = asyncio.ensure_future(frames_of(nexus))
        await asyncio.wait_for(server.arrived.wait(), 5)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.wait_for(server.gone.wait(), 5)


async def test_a_run_longer_than_its_limit_is_given_up() -> None:
    endless = streams(b"data: " + DELTA + b"\n\n", end="never")
    async with against(endless, timeouts=NexusTimeouts(run=0.1)) as (nexus, _, _):
        with pytest.raises(NexusError, match=r"within 0\.1 s"):
            await frames_of(nexus)


async def test_a_run_is_refused_as_any_other_call() -> None:
    body = b'{"error":{"code":-32044,"errorCode":"AGENT_UNKNOWN_SESSION","message":"gone"}}'
    async with against(answers(body, status=404)) as (nexus, _, _):
        with pytest.raises(NexusError, match="gone") as refused:
            await frames_of(nexus)
        assert (refused.value.status, refused.value.code) == (404, -32044)


async def test_a_run_is_tried_again_before_its_first_byte_if_nexus_says_when() -> None:
    busy = answers(status=503, Retry_After="0")
    async with against(busy, streams(b"data: " + FINAL + b"\n\n")) as (nexus, _, pauses):
        assert await frames_of(nexus) == [FINAL]
        assert len(pauses.seconds) == 1


async def test_an_answer_that_is_no_stream_is_an_error() -> None:
    async with against(answers(b'{"frames":[]}')) as (nexus, _, _):
        with pytest.raises(NexusError, match="application/json, not events"):
            await frames_of(nexus)


async def test_an_event_over_the_line_cap_ends_the_run() -> None:
    pieces = [b"data: " + FINAL + b"\n\ndata: ", *[b"x" * 2**20] * 17]
    async with against(streams(*pieces, end="never")) as (nexus, server, _):
        with pytest.raises(NexusError, match="longer than"):
            await frames_of(nexus)
        await asyncio.wait_for(server.gone.wait(), 5)


async def test_results_of_tools_get_through_while_many_runs_hold_their_connections(
    leak_check: LeakCheck,
) -> None:
    del leak_check
    endless = streams(b"data: " + DELTA + b"\n\n", end="never")
    async with against(*[endless] * 200, answers()) as (nexus, _, _):
        runs = [nexus.run_agent(TOKEN, RUN) for _ in range(200)]
        assert await asyncio.gather(*(anext(run) for run in runs)) == [DELTA] * 200
        assert not await nexus.cancel_run(TOKEN, "r")
        for run in runs:
            await run.aclose()
