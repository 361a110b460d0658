"""A closed load: what is counted, which numbers the calls get, what ends it."""

import asyncio

import pytest

from benchmarks.drivers import load
from benchmarks.model import WrongAnswer


async def test_starting_the_callers_is_not_counted() -> None:
    made: list[int] = []
    slow = asyncio.Event()

    async def call(number: int) -> None:
        made.append(number)
        if number == 0:  # the first caller's first answer comes after many of the others'
            await slow.wait()
        elif len(made) == 500:
            slow.set()
        await asyncio.sleep(0)

    sample = await load.run(call, 4, 0.0, ())
    assert len(made) >= 500
    assert sample["checked"] == 4


async def test_it_goes_on_until_as_many_have_ended_as_are_in_flight() -> None:
    in_flight = most = 0

    async def call(number: int) -> None:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0)
        in_flight -= 1

    sample = await load.run(call, 50, 0.0, ())
    assert most == 50
    assert in_flight == 0
    assert sample["checked"] == 50


async def test_no_number_is_used_twice_and_a_caller_keeps_its_remainder() -> None:
    numbers: dict[asyncio.Task[None] | None, list[int]] = {}

    async def call(number: int) -> None:
        numbers.setdefault(asyncio.current_task(), []).append(number)
        await asyncio.sleep(0)

    await load.run(call, 7, 0.01, ())
    every = [number for mine in numbers.values() for number in mine]
    assert len(every) == len(set(every))
    assert sorted({number % 7 for number in mine} for mine in numbers.values()) == [
        {remainder} for remainder in range(7)
    ]


async def test_a_wrong_answer_ends_it_whenever_it_comes() -> None:
    async def call(number: int) -> None:
        await asyncio.sleep(0)
        if number == 31:
            msg = "31 is wrong"
            raise WrongAnswer(msg)

    with pytest.raises(WrongAnswer, match="31 is wrong"):
        await load.run(call, 3, 10.0, ())


async def test_an_operation_that_fails_says_how() -> None:
    async def call(number: int) -> None:
        await asyncio.sleep(0)
        msg = "no such thing"
        raise LookupError(msg)

    with pytest.raises(WrongAnswer, match="LookupError: no such thing"):
        await load.run(call, 1, 0.0, ())


async def test_an_answer_that_never_comes_is_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "LIMIT", 0.05)

    async def call(number: int) -> None:
        await asyncio.Event().wait()

    with pytest.raises(WrongAnswer, match=r"missing after 0\.05 s"):
        await load.run(call, 2, 0.0, ())
