"""The runner: every check comes to a verdict, in bounded time, and nothing is left running."""

import asyncio
from typing import Any

import pytest

from executa_conformance.evidence import KEPT_EVENTS, SHOWN_BYTES, Evidence
from executa_conformance.model import (
    Check,
    CheckFunction,
    NotApplicable,
    NotMet,
    NotStrict,
    Remark,
    Result,
)
from executa_conformance.patience import Patience
from executa_conformance.runner import run_check, run_checks


class Bench:
    """A target whose scene is the evidence."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        self.closed = 0

    def scene(self, check: Check, evidence: Evidence) -> Evidence:
        return evidence

    async def applies(self, check: Check) -> None:
        if self.reason:
            raise NotApplicable(self.reason)

    async def close(self, scene: Evidence) -> None:
        self.closed += 1


def check_of(function: CheckFunction, name: str = "x", *, passive: bool = False) -> Check:
    return Check(f"LIFE-001:{name}", "LIFE-001", "plugin", "core", function, passive)


def raising(fault: Exception) -> CheckFunction:
    async def function(scene: Any) -> None:
        raise fault

    return function


async def nothing(scene: Any) -> None:
    """Passes."""


async def for_ever(scene: Any) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("function", "word", "message"),
    [
        (nothing, "pass", ""),
        (raising(NotMet("seen")), "fail", "seen"),
        (raising(NotStrict("seen")), "non-strict", "seen"),
        (raising(NotApplicable("why")), "not-applicable", "why"),
        (raising(Remark("oh")), "info", "oh"),
        (raising(KeyError("k")), "fail", "the check cannot run: KeyError: 'k'"),
        (raising(TimeoutError()), "fail", "the check did not end within 120 s"),
    ],
)
async def test_a_check_comes_to_the_verdict_that_it_raises(
    function: CheckFunction, word: str, message: str
) -> None:
    bench = Bench()
    result = await run_check(check_of(function), bench, Patience())

    assert (result.word, result.message) == (word, message)
    assert bench.closed == 1


async def test_a_check_that_does_not_end_fails_and_is_ended() -> None:
    bench = Bench()
    result = await run_check(check_of(for_ever), bench, Patience(check=0.01))

    assert (result.word, result.message) == ("fail", "the check did not end within 0.01 s")
    assert bench.closed == 1


async def test_a_check_that_does_not_apply_is_not_run() -> None:
    result = await run_check(check_of(raising(NotMet("ran"))), Bench("not here"), Patience())

    assert (result.word, result.message) == ("not-applicable", "not here")


async def test_checks_run_at_the_same_time_up_to_the_bound_and_keep_their_order() -> None:
    running, most = 0, 0
    both = asyncio.Event()

    async def together(scene: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            both.set()
        await both.wait()
        running -= 1

    found = [check_of(together, str(number)) for number in range(4)]
    told: list[Result] = []
    results = await run_checks(found, Bench(), patience=Patience(), jobs=2, told=told.append)

    assert most == 2
    assert [result.check for result in results] == [check.name for check in found]
    assert {result.check for result in told} == {check.name for check in found}


async def test_what_judges_the_others_runs_after_them() -> None:
    order: list[str] = []

    def noting(name: str) -> CheckFunction:
        async def function(scene: Any) -> None:
            order.append(name)

        return function

    found = [
        check_of(noting("judges"), "a", passive=True),
        check_of(noting("first"), "b"),
        check_of(noting("second"), "c"),
    ]
    await run_checks(found, Bench(), patience=Patience(), jobs=1)

    assert order == ["first", "second", "judges"]


async def test_what_a_check_gathered_is_kept_when_it_fails() -> None:
    async def function(scene: Evidence) -> None:
        scene.add(">", b'{"a":1}\n')
        scene.add("<", b"\xff oh\n", "odd")
        raise NotMet("no")

    result = await run_check(check_of(function), Bench(), Patience())

    assert [(each.way, each.line, each.note) for each in result.evidence] == [
        (">", '{"a":1}', ""),
        ("<", "\\xff oh", "odd"),
    ]


def test_a_long_line_is_kept_by_its_head_with_its_size() -> None:
    evidence = Evidence()
    evidence.add("<", b"x" * (SHOWN_BYTES + 1))
    evidence.add("<", b"x" * SHOWN_BYTES)

    first, second = evidence.events()
    assert (len(first.line), first.size) == (SHOWN_BYTES, SHOWN_BYTES + 1)
    assert (len(second.line), second.size) == (SHOWN_BYTES, 0)


def test_of_too_many_lines_the_first_and_the_last_are_kept() -> None:
    evidence = Evidence()
    for number in range(KEPT_EVENTS + 50):
        evidence.tell(str(number))

    lines = [each.line for each in evidence.events()]
    assert lines[0] == "0"
    assert lines[-1] == str(KEPT_EVENTS + 49)
    assert "50 lines are not shown" in lines
