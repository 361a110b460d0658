"""The one timer of all deadlines, with a clock that the tests move."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from executa_protocol.aio import deadlines as module
from executa_protocol.aio.deadlines import Deadlines
from executa_protocol.errors import CallTimeout
from executa_protocol.limits import SWEEP_INTERVAL


class Timer:
    """What `call_later` gave."""

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Clock:
    """A loop's timers and `time.monotonic`, which move when they are told to.

    `early` makes a timer fire that much before its time, as a coarse clock does; at most
    by half its delay.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        self.early = 0.0
        self.timers: list[Timer] = []
        self.armed = 0

    def monotonic(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        assert delay > 0, "a timer of no delay would starve the loop"
        timer = Timer(self.now + max(delay / 2, delay - self.early), callback)
        self.timers.append(timer)
        self.armed += 1
        return timer

    @property
    def pending(self) -> list[Timer]:
        return [timer for timer in self.timers if not timer.cancelled]

    def advance(self, seconds: float) -> None:
        """Let time pass, firing timers in order."""
        end = self.now + seconds
        while due := [timer for timer in self.pending if timer.when <= end]:
            timer = min(due, key=lambda timer: timer.when)
            self.timers.remove(timer)
            self.now = max(self.now, timer.when)
            timer.callback()
        self.now = end


class Waiting:
    """A call that notes when it failed."""

    def __init__(self, clock: Clock) -> None:
        self.deadline = math.inf
        self.failed: list[float] = []
        self._clock = clock

    def fail(self, reason: Exception) -> None:
        assert isinstance(reason, CallTimeout)
        self.failed.append(self._clock.now)


class Table:
    """Calls, their deadlines and a clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.calls: dict[int, Waiting] = {}
        self.polls: list[Callable[[], None]] = []
        self.deadlines: Deadlines[Waiting] = Deadlines(
            self.calls, self._poll, asyncio.get_running_loop()
        )

    def _poll(self) -> None:
        for poll in self.polls:
            poll()

    def call(self, timeout: float | None) -> Waiting:
        call = Waiting(self.clock)
        self.calls[len(self.calls) + 1] = call
        if timeout is not None:
            self.deadlines.watch(call, self.clock.now + timeout)
        return call

    def answer(self, call: Waiting) -> None:
        number = next(number for number, other in self.calls.items() if other is call)
        del self.calls[number]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table whose clock stands still."""
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: clock)
    return Table(clock)


def test_nothing_is_armed_until_something_has_a_deadline(table: Table) -> None:
    table.call(None)
    assert table.clock.pending == []


def test_a_call_fails_at_its_deadline_and_not_before(table: Table) -> None:
    call = table.call(5.0)
    table.clock.advance(4.999)
    assert call.failed == []
    table.clock.advance(0.001 + SWEEP_INTERVAL)
    assert len(call.failed) == 1
    assert 1005.0 <= call.failed[0] <= 1005.0 + SWEEP_INTERVAL
    assert table.calls == {}


@pytest.mark.parametrize("early", [0.0, 0.0004, 0.004])
def test_many_deadlines_are_never_early_and_at_most_one_interval_late(
    table: Table, early: float
) -> None:
    table.clock.early = early
    timeouts = [0.0, 0.001, 0.0101, 0.03, 0.05, 0.0501, 0.3, 0.3001, 1.0, 2.5, 60.0]
    calls = [(timeout, table.call(timeout)) for timeout in reversed(timeouts)]
    table.clock.advance(61.0)
    for timeout, call in calls:
        (failed,) = call.failed
        assert 1000.0 + timeout <= failed <= 1000.0 + timeout + SWEEP_INTERVAL + early + 1e-9
    assert table.clock.pending == []


def test_one_timer_serves_all(table: Table) -> None:
    for _ in range(1000):
        table.call(60.0)
    assert (table.clock.armed, len(table.clock.pending)) == (1, 1)
    table.call(1.0)
    assert len(table.clock.pending) == 1
    assert table.clock.pending[0].when == 1001.0
    table.clock.advance(59.0)
    assert table.clock.armed < 10


def test_the_timer_is_not_set_again_once_everything_was_answered(table: Table) -> None:
    table.answer(table.call(1.0))
    table.clock.advance(1.0 + SWEEP_INTERVAL)
    assert table.clock.pending == []


def test_calls_without_a_deadline_keep_no_timer(table: Table) -> None:
    forever, limited = table.call(None), table.call(1.0)
    table.clock.advance(1.0 + SWEEP_INTERVAL)
    assert limited.failed
    assert not forever.failed
    assert table.clock.pending == []


def test_an_answer_that_has_arrived_wins_over_the_deadline(table: Table) -> None:
    call, other = table.call(1.0), table.call(1.0)
    table.polls.append(lambda: table.answer(call) if call in table.calls.values() else None)
    table.clock.advance(1.0 + SWEEP_INTERVAL)
    assert call.failed == []
    assert other.failed


def test_nothing_is_polled_while_no_deadline_has_passed(table: Table) -> None:
    table.clock.early = 0.5
    polled: list[None] = []
    table.polls.append(lambda: polled.append(None))
    table.call(1.0)
    table.clock.advance(0.6)  # the timer has fired, too soon
    assert polled == []
    table.clock.advance(0.5)
    assert polled == [None]


def test_a_deadline_that_is_moved_counts_from_then_on(table: Table) -> None:
    call = table.call(60.0)
    table.deadlines.watch(call, table.clock.now + 1.0)
    table.clock.advance(1.0 + SWEEP_INTERVAL)
    assert call.failed
    later = table.call(1.0)
    table.deadlines.watch(later, table.clock.now + 5.0)
    table.clock.advance(2.0)
    assert not later.failed
    table.clock.advance(3.0 + SWEEP_INTERVAL)
    assert later.failed


def test_what_a_poll_begins_is_watched_too(table: Table) -> None:
    begun: list[Waiting] = []
    table.call(1.0)
    far = table.call(100.0)
    table.polls.append(lambda: None if begun else begun.append(table.call(0.2)))
    table.clock.advance(1.0 + SWEEP_INTERVAL)
    assert len(table.clock.pending) == 1
    table.clock.advance(0.2 + SWEEP_INTERVAL)
    assert begun[0].failed
    assert not far.failed


def test_what_fails_may_call_again(table: Table) -> None:
    call = table.call(1.0)
    again: list[Waiting] = []

    def fail(reason: Exception) -> None:
        again.append(table.call(1.0))

    call.fail = fail
    table.clock.advance(1.0 + SWEEP_INTERVAL)
    table.clock.advance(1.0 + SWEEP_INTERVAL)
    assert again[0].failed


def test_a_poll_that_ends_everything_is_the_end(table: Table) -> None:
    table.call(1.0)
    table.call(2.0)

    def end() -> None:
        table.deadlines.stop()
        table.calls.clear()

    table.polls.append(end)
    table.clock.advance(5.0)
    assert table.clock.pending == []


def test_stopping_cancels_the_timer_and_may_be_repeated(table: Table) -> None:
    call: Any = table.call(1.0)
    table.deadlines.stop()
    table.deadlines.stop()
    assert table.clock.pending == []
    table.clock.advance(10.0)
    assert call.failed == []
