"""A nexus that is down, slow, busy or broken: what is tried again, and what is told."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable

import pytest

from executa_host.nexus.http import HttpNexus, NexusTimeouts
from executa_protocol.limits import MAX_LINE
from executa_protocol.nexus import NexusError
from tests.host.nexus_client import (
    CREATE,
    GRANT,
    KEY,
    OPENING,
    SAMPLE,
    TOKEN,
    Pauses,
    against,
    frames_of,
)
from tests.host.nexus_server import answers, hangs, hangs_up, streams

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
            await frames_of(nexus)
        assert cut.value.__context__ is None
