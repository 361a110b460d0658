"""Faults on demand: each kind, at both doors, and the same again under the same seed."""

import asyncio
from typing import Any, cast

import pytest

from executa_nexus_stub import NexusStub, StubConfig, create
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.faults import FaultConfig, FaultRule
from executa_protocol.nexus import Nexus, NexusError
from tests.nexus_stub.calls import (
    ask,
    opening,
    refused_as,
    run,
    session,
    store,
    tokens,
    until,
)

HELLO = ask("Hello there.")


def use(stub: NexusStub, *rules: FaultRule, seed: int = 7) -> None:
    """Follow these rules from now on."""
    stub.faults.use(FaultConfig(rules=rules, seed=seed))


async def test_an_injected_error_has_its_status_and_the_code_of_its_symbol(
    nexus: Nexus, stub: NexusStub
) -> None:
    sampling, _ = await tokens(nexus)
    use(
        stub,
        FaultRule(kind="error", endpoint="sample", times=1, symbol="SAMPLING_PROVIDER_ERROR"),
        FaultRule(kind="error", endpoint="sample", status=504, code=-32005, times=1),
    )

    with refused_as("SAMPLING_PROVIDER_ERROR", 503):
        await nexus.sample(sampling, HELLO)
    with refused_as("SAMPLING_TIMEOUT", 504):
        await nexus.sample(sampling, HELLO)
    await nexus.sample(sampling, HELLO)
    await nexus.open_invoke(opening())


async def test_a_rate_limit_says_when_to_come_back(nexus: Nexus, stub: NexusStub) -> None:
    _, storage = await tokens(nexus)
    use(stub, FaultRule(kind="rate_limit", endpoint="storage/get", retry_after=2.0))

    with pytest.raises(NexusError) as info:
        await store(nexus, storage, "storage/get", key="a")
    assert (info.value.status, info.value.retry_after) == (429, 2.0)
    await store(nexus, storage, "storage/set", key="a", value=1)


async def test_latency_passes_by_the_clock(stub: NexusStub, clock: ManualClock) -> None:
    sampling, _ = await tokens(stub)
    use(stub, FaultRule(kind="latency", endpoint="sample", seconds=5.0))
    waiting = asyncio.ensure_future(stub.sample(sampling, HELLO))
    await until(lambda: clock.pending_count == 1)
    clock.advance(4.9)
    assert not waiting.done()

    clock.advance(0.1)

    assert (await waiting).content.text
    assert clock.pending_count == 0


async def test_log_normal_latency_varies_around_its_median(
    stub: NexusStub, clock: ManualClock
) -> None:
    use(stub, FaultRule(kind="latency", endpoint="sample", seconds=1.0, sigma=0.5))
    starts: list[float] = []
    for _ in range(30):
        before = clock.now()
        waiting = asyncio.ensure_future(stub.faults.before("sample"))
        while not waiting.done():
            await asyncio.sleep(0)
            clock.advance(0.05)
        starts.append(clock.now() - before)

    assert len(set(starts)) > 5
    assert 0.5 < sorted(starts)[15] < 2.0


async def frames_until_the_end(nexus: Nexus, token: str) -> tuple[list[bytes], NexusError | None]:
    """Raw frames of a run, and how it broke if it did."""
    got: list[bytes] = []
    try:
        async for raw in nexus.run_agent(token, run("Boats float on the open water all day.")):
            got.append(raw)  # noqa: PERF401 - what came before it broke counts
    except NexusError as fault:
        return got, fault
    return got, None


async def test_a_stream_is_cut_after_so_many_frames(nexus: Nexus, stub: NexusStub) -> None:
    minted = await session(nexus)
    use(stub, FaultRule(kind="cut", endpoint="run_agent", after=1))

    got, fault = await frames_until_the_end(nexus, minted.token)

    assert len(got) == 1
    assert fault is not None
    assert fault.status == 0
    await until(lambda: stub.in_flight == 0)


async def test_frames_are_doubled_and_malformed_where_the_rules_say(
    nexus: Nexus, stub: NexusStub
) -> None:
    minted = await session(nexus)
    plain, _ = await frames_until_the_end(nexus, minted.token)
    use(stub, FaultRule(kind="duplicate", after=0))
    doubled, _ = await frames_until_the_end(nexus, minted.token)
    use(stub, FaultRule(kind="malformed", after=0))

    broken: list[bytes] = [raw async for raw in stub.run_agent(minted.token, run("Boats."))]

    assert doubled[0] == doubled[1] == plain[0]
    assert len(doubled) == len(plain) + 1
    with pytest.raises(UnicodeDecodeError):
        broken[0].decode()
    assert b"final" in broken[-1]


async def test_the_first_byte_may_be_slow(stub: NexusStub, clock: ManualClock) -> None:
    minted = await session(stub)
    use(stub, FaultRule(kind="slow_first_byte", seconds=9.0))
    stream = cast("Any", stub.run_agent(minted.token, run("Boats.")))
    first = asyncio.ensure_future(anext(stream))
    await until(lambda: clock.pending_count == 1)
    assert not first.done()

    clock.advance(9.0)

    assert b"delta" in await first
    await stream.aclose()


async def injected(clock: ManualClock, seed: int, order: list[str]) -> list[Any]:
    """What strikes calls in that order."""
    rules = (FaultRule(kind="error", rate=0.5), FaultRule(kind="rate_limit", rate=0.2))
    stub = NexusStub(StubConfig(faults=FaultConfig(rules=rules, seed=seed)), clock=clock)
    for endpoint in order:
        try:
            await stub.faults.before(endpoint)
        except NexusError:
            continue
    found = [(item.endpoint, item.call, item.kind) for item in stub.faults.injected]
    return sorted(found)


async def test_a_seed_reproduces_its_faults_whatever_the_order_of_endpoints(
    clock: ManualClock,
) -> None:
    order = ["sample", "storage", "open_invoke"] * 20

    first = await injected(clock, 7, order)

    assert first
    assert first == await injected(clock, 7, order)
    assert first == await injected(clock, 7, sorted(order))
    assert first != await injected(clock, 8, order)


async def test_a_drawn_seed_is_told_and_rules_come_from_the_configuration() -> None:
    stub = create({"faults": {"rules": [{"kind": "error", "endpoint": "open_invoke"}]}})

    with pytest.raises(NexusError, match="injected"):
        await stub.open_invoke(opening())
    assert stub.faults.seed >= 0
    assert [item.kind for item in stub.faults.injected] == ["error"]


async def test_a_skewed_clock_makes_tokens_that_look_old(clock: ManualClock) -> None:
    ahead = NexusStub(StubConfig(faults=FaultConfig(clock_skew=700.0)), clock=clock)

    grant = await ahead.open_invoke(opening())

    assert grant.sampling_token is not None
    assert grant.sampling_token.expires_at == clock.now() + 1300
