"""The HTTP client of nexus against a server that fails in every way: each is one clear error."""

import asyncio
import contextlib
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from executa_host.nexus.http import HttpNexus, NexusTimeouts, read_base
from executa_protocol.errors import DecodeFailure, UsageError
from executa_protocol.limits import MAX_LINE
from executa_protocol.methods.agent import SessionCreateParams
from executa_protocol.methods.common import TextContent
from executa_protocol.methods.sampling import SamplingMessage, SamplingParams
from executa_protocol.nexus import AgentRun, InvokeOpening, NexusError
from executa_protocol.normaliser import FrameNormaliser
from tests.host.nexus_server import Reply, ScriptedNexus, answers, hangs, hangs_up, streams
from tests.support.leaks import LeakCheck

TOKEN = "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl"  # noqa: S105 - distinctive, and opens nothing
KEY = "host-key-distinctive"
OPENING = InvokeOpening("local", "tool-x", "x", "do", "0" * 32)
SAMPLE = SamplingParams(
    messages=[SamplingMessage("user", TextContent("text", "a private question"))], max_tokens=5
)
CREATE = SessionCreateParams(kind="agent", agent_submode="auto")
RUN = AgentRun(run_id="r", content="a private question")
GRANT = b'{"grants":{"sampling":true}}'


class Pauses:
    """What the client waited between attempts."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@contextlib.asynccontextmanager
async def against(
    *replies: Reply, **options: Any
) -> AsyncGenerator[tuple[HttpNexus, ScriptedNexus, Pauses]]:
    """A client, the server that it talks to, and its pauses."""
    pauses = Pauses()
    async with ScriptedNexus(*replies) as server:
        nexus = HttpNexus(server.url, key=KEY, pause=pauses, jitter=lambda: 0.5, **options)
        try:
            yield nexus, server, pauses
        finally:
            assert nexus.in_flight == 0
            await nexus.aclose()


async def _frames(nexus: HttpNexus) -> list[bytes]:
    return [frame async for frame in nexus.run_agent(TOKEN, RUN)]


# --- Requests -----------------------------------------------------------------------------------


async def test_tokens_and_the_key_travel_in_headers_alone() -> None:
    sampled = b'{"role":"assistant","content":{"type":"text","text":"x"},"model":"m",\n'
    sampled += b'"stopReason":"endTurn"}'
    async with against(answers(GRANT), answers(sampled), answers(b"{}")) as (nexus, server, _):
        await nexus.open_invoke(OPENING)
        await nexus.sample(TOKEN, SAMPLE)
        await nexus.storage(TOKEN, "storage/get", b'{"key":"k","scope":"tool"}')
        bearers = [seen.headers["Authorization"] for seen in server.seen]
        assert bearers == [f"Bearer {KEY}", f"Bearer {TOKEN}", f"Bearer {TOKEN}"]
        assert [seen.raw_path for seen in server.seen] == [
            "/api/v1/executa/invokes",
            "/api/v1/copilot/sampling",
            "/api/v1/storage/kv/get",
        ]
        assert not any(TOKEN.encode() in seen.body or seen.query for seen in server.seen)
        assert "Cookie" not in server.seen[-1].headers


async def test_without_a_key_none_is_shown() -> None:
    async with ScriptedNexus(answers(GRANT)) as server:
        nexus = HttpNexus(server.url)
        await nexus.open_invoke(OPENING)
        assert "Authorization" not in server.seen[0].headers
        await nexus.aclose()


async def test_connections_are_used_again() -> None:
    async with against(answers(b"{}")) as (nexus, server, _):
        for _ in range(5):
            await nexus.storage(TOKEN, "storage/get", b"{}")
        assert len({seen.connection for seen in server.seen}) == 1


async def test_a_cookie_and_a_redirect_are_not_followed() -> None:
    away = answers(status=307, Location="http://127.0.0.1:1/steal", Set_Cookie="a=b")
    async with against(away) as (nexus, server, _):
        for _ in range(2):
            with pytest.raises(NexusError, match="307") as refused:
                await nexus.storage(TOKEN, "storage/set", b"{}")
            assert refused.value.status == 307
        assert "Cookie" not in server.seen[1].headers


async def test_an_id_stays_one_segment_of_the_path() -> None:
    async with against(answers()) as (nexus, server, _):
        await nexus.close_invoke("../admin?x=1#y")
        assert server.seen[0].raw_path == "/api/v1/executa/invokes/%2E%2E%2Fadmin%3Fx%3D1%23y"


# --- Down, slow, cut ----------------------------------------------------------------------------


async def test_a_nexus_that_is_down_is_tried_three_times_and_named() -> None:
    async with against(answers()) as (_, server, _):
        url = server.url
    pauses = Pauses()
    nexus = HttpNexus(url, pause=pauses, jitter=lambda: 0.5)
    with pytest.raises(NexusError, match=r"cannot be reached at 127\.0\.0\.1:\d+") as down:
        await nexus.sample(TOKEN, SAMPLE)
    assert (down.value.status, down.value.code) == (0, None)
    assert pauses.seconds == [0.1, 0.2]
    await nexus.aclose()


@pytest.mark.parametrize("call", ["storage", "sample", "create"])
async def test_a_nexus_that_does_not_answer_is_given_up_in_time(call: str) -> None:
    short = NexusTimeouts(storage=0.05, sampling=0.05, create=0.05)
    async with against(hangs(), timeouts=short) as (nexus, server, _):
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "storage": lambda: nexus.storage(TOKEN, "storage/get", b"{}"),
            "sample": lambda: nexus.sample(TOKEN, SAMPLE),
            "create": lambda: nexus.create_agent_session(TOKEN, CREATE),
        }
        with pytest.raises(NexusError, match=r"within 0\.05 s") as late:
            await calls[call]()
        assert isinstance(late.value, TimeoutError)
        assert (late.value.status, late.value.code) == (0, None)
        await asyncio.wait_for(server.gone.wait(), 5)


async def test_a_connection_that_breaks_is_tried_again_only_where_that_is_safe() -> None:
    async with against(hangs_up()) as (nexus, server, _):
        with pytest.raises(NexusError, match="broke"):
            await nexus.sample(TOKEN, SAMPLE)
        assert len(server.seen) == 1
        with pytest.raises(NexusError, match="broke"):
            await nexus.storage(TOKEN, "storage/set", b"{}")
        assert len(server.seen) == 2
    async with against(hangs_up(), answers(b'{"value":1}')) as (nexus, server, _):
        assert await nexus.storage(TOKEN, "storage/get", b"{}") == b'{"value":1}'
        assert len(server.seen) == 2


async def test_a_body_that_stops_in_the_middle_is_an_error() -> None:
    async with against(streams(b'{"value":', end="cut", content_type="application/json")) as (
        nexus,
        _,
        _,
    ):
        with pytest.raises(NexusError, match="broke in its answer"):
            await nexus.storage(TOKEN, "storage/set", b"{}")


async def test_an_answer_over_the_line_cap_is_not_read_to_its_end() -> None:
    big = streams(*[b"x" * 2**20] * 17, end="never", content_type="application/json")
    async with against(big) as (nexus, server, _):
        with pytest.raises(NexusError, match=f"more than {MAX_LINE:,} bytes"):
            await nexus.storage(TOKEN, "storage/set", b"{}")
        await asyncio.wait_for(server.gone.wait(), 5)


# --- Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
async def test_a_pause_that_nexus_asks_for_is_kept_also_by_calls_that_cost(status: int) -> None:
    sampled = b'{"role":"assistant","content":{"type":"text","text":"x"},"model":"m",'
    sampled += b'"stopReason":"endTurn"}'
    busy = answers(status=status, Retry_After="2")
    async with against(busy, answers(sampled)) as (nexus, server, pauses):
        assert (await nexus.sample(TOKEN, SAMPLE)).model == "m"
        assert pauses.seconds == [2.05]
        assert len(server.seen) == 2


async def test_a_long_pause_is_the_callers_to_wait() -> None:
    async with against(answers(status=429, Retry_After="60")) as (nexus, server, pauses):
        with pytest.raises(NexusError) as busy:
            await nexus.open_invoke(OPENING)
        assert busy.value.retry_after == 60
        assert pauses.seconds == []
        assert len(server.seen) == 1


async def test_a_pause_may_be_a_date() -> None:
    past = answers(status=503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT")
    async with against(past, answers(GRANT)) as (nexus, _, pauses):
        assert (await nexus.open_invoke(OPENING)).grants.sampling
        assert pauses.seconds == [0.05]


async def test_a_quota_that_is_used_up_is_not_asked_again() -> None:
    body = b'{"error":{"code":-32002,"errorCode":"QUOTA_EXCEEDED","message":"used up"}}'
    async with against(answers(body, status=429, Retry_After="1")) as (nexus, server, _):
        with pytest.raises(NexusError, match="used up") as quota:
            await nexus.sample(TOKEN, SAMPLE)
        assert (quota.value.code, quota.value.symbol) == (-32002, "QUOTA_EXCEEDED")
        assert len(server.seen) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_a_server_error_is_tried_again_only_where_that_is_safe(status: int) -> None:
    async with against(answers(b"<html>oops", status=status)) as (nexus, server, _):
        with pytest.raises(NexusError, match=f"nexus answered {status} ") as failed:
            await nexus.sample(TOKEN, SAMPLE)
        assert failed.value.status == status
        assert len(server.seen) == 1
        with pytest.raises(NexusError, match=str(status)):
            await nexus.open_invoke(OPENING)
        assert len(server.seen) == 4


async def test_a_key_that_nexus_does_not_know_is_told_to_whoever_runs_the_host() -> None:
    async with against(answers(b'{"detail":"nope"}', status=401)) as (nexus, server, _):
        with pytest.raises(NexusError, match=r"EXECUTA_NEXUS_KEY \(nope\)") as refused:
            await nexus.open_invoke(OPENING)
        assert (refused.value.status, refused.value.symbol) == (401, "INTERNAL_ERROR")
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("body", "code", "symbol", "words"),
    [
        (b'{"error":{"code":-32027,"errorCode":"INVALID_PATH","message":"key: bad"}}',
         -32027, "INVALID_PATH", "key: bad"),
        (b'{"error":"precondition_failed","message":"etag moved"}',
         -32023, "precondition_failed", "etag moved"),
        (b'{"detail":{"code":"forbidden_scope","message":"scope: app"}}',
         -32021, "forbidden_scope", "scope: app"),
        (b'{"detail":"not today"}', None, "", "not today"),
        (b'{"error":"no_such_symbol"}', None, "no_such_symbol", "422"),
        (b'{"error":7}', None, "", "422"),
        (b'[1]', None, "", "422"),
        (b'\xff', None, "", "422"),
        (b'', None, "", "422"),
    ],
)  # fmt: skip
async def test_every_envelope_of_an_error_is_read(
    body: bytes, code: int | None, symbol: str, words: str
) -> None:
    async with against(answers(body, status=422)) as (nexus, _, _):
        with pytest.raises(NexusError, match=words) as refused:
            await nexus.storage(TOKEN, "storage/set", b"{}")
        assert (refused.value.code, refused.value.symbol) == (code, symbol)


async def test_no_error_holds_a_token_a_url_or_more_than_one_line_of_nexus() -> None:
    words = (
        f"Bearer {TOKEN} for {TOKEN} at https://store.example/x?signature=abc\n"
        "\x1b[31mkey=s3cret " + "A" * 64 + " " + "long " * 100
    )
    body = (
        b'{"error":{"message":'
        + repr(words).replace("'", '"').encode().replace(b"\\x1b", b"\\u001b")
        + b"}}"
    )
    async with against(answers(body, status=400)) as (nexus, _, _):
        with pytest.raises(NexusError) as refused:
            await nexus.storage(TOKEN, "storage/set", b"{}")
    text = str(refused.value)
    assert "withheld" in text
    assert "long long" in text
    for secret in (TOKEN, "c2lnbmF0dXJl", "store.example", "A" * 64, "\n", "\x1b"):
        assert secret not in text
    assert len(text) <= 300
    whole = "".join(traceback.format_exception(refused.value)) + repr(nexus)
    assert TOKEN not in whole
    assert KEY not in whole
    # What the library raised holds the request's headers, so that it may not hang on ours.
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None


async def test_what_the_library_raises_does_not_hang_on_our_error() -> None:
    async with against(hangs_up()) as (nexus, _, _):
        with pytest.raises(NexusError) as broken:
            await nexus.sample(TOKEN, SAMPLE)
        assert broken.value.__context__ is None
        with pytest.raises(NexusError) as cut:
            await _frames(nexus)
        assert cut.value.__context__ is None


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'"x"', b"{", b'{"a":1e999}', b'{"a":"\xff"}', b"[" * 200 + b"]" * 200,
     b'{"value":' + b"[" * 126 + b"]" * 126 + b"}"],
    ids=["empty", "array", "text", "half", "infinite", "utf8", "deep", "too deep for the line"],
)  # fmt: skip
async def test_an_answer_that_could_break_the_plugins_line_is_an_error(body: bytes) -> None:
    async with against(answers(body)) as (nexus, _, _):
        with pytest.raises(NexusError):
            await nexus.storage(TOKEN, "storage/get", b"{}")


async def test_a_pretty_printed_answer_becomes_one_line() -> None:
    async with against(answers(b'{\r\n "value": "a\\nb"\n}')) as (nexus, _, _):
        assert await nexus.storage(TOKEN, "storage/get", b"{}") == b'{   "value": "a\\nb" }'


async def test_an_answer_of_another_shape_is_named() -> None:
    async with against(answers(b'{"app_session_uuid":7}')) as (nexus, _, _):
        with pytest.raises(
            NexusError, match=r"agent session that cannot be read: app_session_uuid"
        ):
            await nexus.create_agent_session(TOKEN, CREATE)


# --- Runs ---------------------------------------------------------------------------------------

DELTA = b'{"event":"delta","text":"a"}'
FINAL = b'{"event":"final","text":"a"}'


async def test_frames_come_as_the_bytes_they_are_however_they_are_cut() -> None:
    stream = b": hello\n\ndata: " + DELTA + b"\r\n\r\nevent: final\ndata: " + FINAL + b"\n\n"
    pieces = [stream[at : at + 7] for at in range(0, len(stream), 7)]
    async with against(streams(*pieces)) as (nexus, server, _):
        assert await _frames(nexus) == [DELTA, FINAL]
        assert await _frames(nexus) == [DELTA, FINAL]
        assert len({seen.connection for seen in server.seen}) == 1


async def test_the_streams_own_name_of_an_event_is_put_into_a_frame_without_one() -> None:
    stream = b'event: delta\ndata: {"text":"\\"event\\""}\n\nevent: x\ndata: [DONE]\n\n'
    stream += (
        b'event: x\ndata: {"event":"delta","text":"b"}\n\nevent: x\ndata: {"a":{"event":1}}\n\n'
    )
    async with against(streams(stream)) as (nexus, _, _):
        assert await _frames(nexus) == [
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
        broken, final = await _frames(nexus)
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
        reading = asyncio.ensure_future(_frames(nexus))
        await asyncio.wait_for(server.arrived.wait(), 5)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.wait_for(server.gone.wait(), 5)


async def test_a_run_longer_than_its_limit_is_given_up() -> None:
    endless = streams(b"data: " + DELTA + b"\n\n", end="never")
    async with against(endless, timeouts=NexusTimeouts(run=0.1)) as (nexus, _, _):
        with pytest.raises(NexusError, match=r"within 0\.1 s"):
            await _frames(nexus)


async def test_a_run_is_refused_as_any_other_call() -> None:
    body = b'{"error":{"code":-32044,"errorCode":"AGENT_UNKNOWN_SESSION","message":"gone"}}'
    async with against(answers(body, status=404)) as (nexus, _, _):
        with pytest.raises(NexusError, match="gone") as refused:
            await _frames(nexus)
        assert (refused.value.status, refused.value.code) == (404, -32044)


async def test_a_run_is_tried_again_before_its_first_byte_if_nexus_says_when() -> None:
    busy = answers(status=503, Retry_After="0")
    async with against(busy, streams(b"data: " + FINAL + b"\n\n")) as (nexus, _, pauses):
        assert await _frames(nexus) == [FINAL]
        assert len(pauses.seconds) == 1


async def test_an_answer_that_is_no_stream_is_an_error() -> None:
    async with against(answers(b'{"frames":[]}')) as (nexus, _, _):
        with pytest.raises(NexusError, match="application/json, not events"):
            await _frames(nexus)


async def test_an_event_over_the_line_cap_ends_the_run() -> None:
    pieces = [b"data: " + FINAL + b"\n\ndata: ", *[b"x" * 2**20] * 17]
    async with against(streams(*pieces, end="never")) as (nexus, server, _):
        with pytest.raises(NexusError, match="longer than"):
            await _frames(nexus)
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


# --- The address --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://nexus.example", "https://nexus.example/api/v1"),
        ("https://nexus.example/", "https://nexus.example/api/v1"),
        ("http://127.0.0.1:5180/api/v1/", "http://127.0.0.1:5180/api/v1"),
        ("http://[::1]:80/team", "http://[::1]/team/api/v1"),
    ],
)
def test_the_address_ends_with_the_interfaces_own_path(given: str, expected: str) -> None:
    assert str(read_base(given)) == expected


@pytest.mark.parametrize(
    "given",
    ["", "nexus.example", "ftp://x", "http://", "http://user:pass@x", "http://x/?token=1", "a b"],
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="address of nexus") as refused:
        HttpNexus(given)
    assert "pass" not in str(refused.value).replace("password", "")


async def test_a_closed_client_refuses() -> None:
    async with against(answers()) as (nexus, _, _):
        await nexus.aclose()
        await nexus.aclose()
        with pytest.raises(NexusError, match="closed"):
            await nexus.storage(TOKEN, "storage/get", b"{}")
