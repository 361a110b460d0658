"""Coroutines that share tasks: in order, each in its own context, whatever others do."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar

import pytest

from executa_host.bounds import Bounds
from executa_host.steps import SharedTasks, Task

_WHO: ContextVar[str] = ContextVar("who", default="nobody")


class Runs:
    """Shared tasks, and what was seen of them."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.waiting: list[Task] = []
        self.seen: list[str] = []
        self.shared = SharedTasks(self.tasks.append)

    def begin(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Have `work` run, and note its task if it waits."""

        def run(said: str) -> Coroutine[None, None, None]:
            assert said == "argument"
            return work()

        self.shared.run(run, "argument", lambda said, task: self.waiting.append(task))

    def run(self, name: str, until: "asyncio.Future[None] | None" = None) -> None:
        async def work() -> None:
            self.seen.append(f"{name} after {_WHO.get()}")
            _WHO.set(name)
            if until is not None:
                await until
                self.seen.append(f"{_WHO.get()} went on")

        self.begin(work)


@pytest.fixture
async def runs() -> Runs:
    return Runs()


def _future() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


async def _some_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_coroutines_that_do_not_wait_run_in_order_in_one_task(runs: Runs) -> None:
    for name in ("a", "b", "c"):
        runs.run(name)
    assert runs.seen == []
    await asyncio.wait(runs.tasks)
    assert runs.seen == ["a after nobody", "b after nobody", "c after nobody"]
    assert len(runs.tasks) == 1
    assert runs.waiting == []
    runs.run("d")
    await asyncio.wait(runs.tasks)
    assert runs.seen[-1] == "d after nobody"


async def test_each_sees_the_context_in_which_it_was_begun(runs: Runs) -> None:
    for name in ("a", "b"):
        token = _WHO.set(f"caller of {name}")
        runs.run(name)
        _WHO.reset(token)
    await asyncio.wait(runs.tasks)
    assert runs.seen == ["a after caller of a", "b after caller of b"]
    assert _WHO.get() == "nobody"


async def test_one_that_waits_keeps_its_task_and_its_context_and_the_rest_goes_on(
    runs: Runs,
) -> None:
    until = _future()
    runs.run("a")
    runs.run("slow", until)
    runs.run("b")
    await _some_turns()
    assert runs.seen == ["a after nobody", "slow after nobody", "b after nobody"]
    assert runs.waiting == [runs.tasks[0]]
    until.set_result(None)
    await asyncio.wait(runs.tasks)
    assert runs.seen[-1] == "slow went on"
    assert len(runs.tasks) == 2


async def test_a_cancel_reaches_the_one_that_waits_alone(runs: Runs) -> None:
    runs.run("slow", _future())
    runs.run("other", until := _future())
    await _some_turns()
    first, second = runs.waiting
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    assert not second.done()
    until.set_result(None)
    await second
    assert runs.seen[-1] == "other went on"


@pytest.mark.parametrize("fault", [RuntimeError("broken"), asyncio.CancelledError()])
async def test_one_that_fails_at_once_holds_up_no_other(runs: Runs, fault: BaseException) -> None:
    async def fails() -> None:
        raise fault

    runs.begin(fails)
    runs.run("next")
    ended, _ = await asyncio.wait(runs.tasks)
    await _some_turns()
    await asyncio.wait(runs.tasks)
    assert runs.seen == ["next after nobody"]
    task = ended.pop()
    assert task.cancelled() or task.exception() is fault


async def test_a_task_that_is_cancelled_before_its_first_step_takes_nothing_with_it(
    runs: Runs,
) -> None:
    runs.run("a")
    runs.tasks[0].cancel()
    await _some_turns()
    await asyncio.wait(runs.tasks)
    assert runs.seen == ["a after nobody"]


async def test_bounded_work_gives_its_value_with_and_without_waiting() -> None:
    bounds = Bounds()
    until = _future()

    async def work(waits: bool) -> str:
        if waits:
            await until
        return "done"

    assert await bounds.run(work(False), 0) == "done"
    asyncio.get_running_loop().call_soon(until.set_result, None)
    assert await bounds.run(work(True), 60) == "done"
    bounds.stop()


async def test_bounded_work_sees_its_end_and_may_clean_up() -> None:
    bounds = Bounds()
    cleaned: list[str] = []

    async def work(then: Callable[[], None]) -> None:
        try:
            await _future()
        finally:
            await asyncio.sleep(0)
            then()

    with pytest.raises(TimeoutError):
        await bounds.run(work(lambda: cleaned.append("late")), 0.01)
    task = asyncio.ensure_future(bounds.run(work(lambda: cleaned.append("cancelled")), 60))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert cleaned == ["late", "cancelled"]
    bounds.stop()
