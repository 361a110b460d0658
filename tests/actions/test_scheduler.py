"""Who runs next: fair between tenants, within limits."""

import asyncio
import random
from pathlib import Path

import pytest

from executa_host.actions.records import ActionState
from executa_host.actions.requests import Caller
from executa_host.actions.scheduler import Entry, FairQueue
from executa_host.actions.settings import EngineSettings, Slots
from tests.actions.rig import Rig

S = ActionState


def entries(queue: FairQueue, count: int = 1000) -> list[str]:
    """Take and release, one after the other."""
    taken: list[str] = []
    for _ in range(count):
        entry = queue.take()
        if entry is None:
            break
        taken.append(entry.action_id)
        queue.release(entry)
    return taken


def test_tenants_take_turns_whatever_the_length_of_their_queues() -> None:
    queue = FairQueue(Slots(in_all=1))
    for number in range(4):
        queue.push(Entry(f"a{number}", "a", "p"))
    for number in range(2):
        queue.push(Entry(f"b{number}", "b", "p"))
    assert entries(queue) == ["a0", "b0", "a1", "b1", "a2", "a3"]


def test_a_tenants_plugins_take_turns_too() -> None:
    queue = FairQueue(Slots())
    for number in range(3):
        queue.push(Entry(f"p{number}", "a", "p"))
    queue.push(Entry("q0", "a", "q"))
    assert entries(queue) == ["p0", "q0", "p1", "p2"]


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        (Slots(in_all=2), 2),
        (Slots(per_tenant=1), 2),
        (Slots(per_plugin=1), 2),
        (Slots(per_tenant=2, per_plugin=1), 2),
        (Slots(), 8),
    ],
)
def test_limits_hold(slots: Slots, expected: int) -> None:
    queue = FairQueue(slots)
    for tenant in "ab":
        for plugin in "pq":
            for number in range(2):
                queue.push(Entry(f"{tenant}{plugin}{number}", tenant, plugin))
    taken: list[Entry] = []
    while (entry := queue.take()) is not None:
        taken.append(entry)
    assert len(taken) == expected
    assert (queue.running, queue.queued) == (expected, 8 - expected)


def test_a_busy_plugin_keeps_nobody_else_waiting() -> None:
    queue = FairQueue(Slots(per_plugin=1))
    for number in range(5):
        queue.push(Entry(f"p{number}", "a", "p"))
    queue.push(Entry("q0", "a", "q"))
    queue.push(Entry("b0", "b", "p"))
    first, second = queue.take(), queue.take()
    assert first is not None
    assert second is not None
    assert {first.action_id, second.action_id} == {"p0", "q0"}
    assert queue.take() is None
    queue.release(first)
    third = queue.take()
    assert third is not None
    assert third.action_id == "b0"


def test_what_is_dropped_does_not_run_and_may_come_again() -> None:
    queue = FairQueue(Slots())
    one, two = Entry("1", "a", "p"), Entry("2", "a", "p")
    for entry in (one, two, one):
        queue.push(entry)
    queue.drop("1")
    assert one not in queue
    queue.push(one)
    queue.drop("2")
    assert entries(queue) == ["1"]
    assert (queue.queued, queue.running) == (0, 0)


def test_any_order_of_pushes_drops_and_takes_keeps_the_counts() -> None:
    chance = random.Random(7)  # noqa: S311 - the same numbers each time
    queue = FairQueue(Slots(in_all=5, per_plugin=3, per_tenant=3))
    waiting: set[str] = set()
    running: list[Entry] = []
    for step in range(20_000):
        what = chance.random()
        if what < 0.4:
            entry = Entry(f"{step}", chance.choice("abc"), chance.choice("pqr"))
            queue.push(entry)
            waiting.add(entry.action_id)
        elif what < 0.5 and waiting:
            gone = chance.choice(sorted(waiting))
            queue.drop(gone)
            waiting.discard(gone)
        elif what < 0.75 and running:
            queue.release(running.pop(chance.randrange(len(running))))
        else:
            taken = queue.take()
            if taken is not None:
                assert taken.action_id in waiting
                waiting.discard(taken.action_id)
                running.append(taken)
        assert (queue.queued, queue.running) == (len(waiting), len(running))
        for name in "abc":
            assert sum(entry.tenant == name for entry in running) <= 3
        for name in "pqr":
            assert sum(entry.plugin == name for entry in running) <= 3


async def test_a_tenant_with_a_long_queue_does_not_keep_another_waiting(tmp_path: Path) -> None:
    settings = EngineSettings(slots=Slots(in_all=2, per_tenant=2, per_plugin=2))
    other = Caller(principal="zoe", tenant="other")
    async with Rig(tmp_path / "a.db", settings) as rig:
        many = [(await rig.submit("p.read")).action_id for _ in range(20)]
        late = await rig.submit("p.read", caller=other)
        await rig.until(late.action_id, S.QUEUED)
        for action_id in many[:2]:
            (await rig.runner.begun(action_id)).answer()
        run = await rig.runner.begun(late.action_id)
        assert len(rig.runner.runs) <= 4
        run.answer()
        rig.runner.auto["read"] = lambda run: run.answer()
        for other in rig.runner.runs:
            other.answer()
        await asyncio.gather(*(rig.outcome(action_id) for action_id in many))
        assert (await rig.engine.status()).queued == 0
        await rig.check()
