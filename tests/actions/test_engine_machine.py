"""Whatever happens in whatever order, crashes included, an engine keeps its promises.

Rules submit, answer, lose, cancel, decide, crash and let time pass. What must hold at every
moment is little and hard: nothing that mutates runs twice, nothing runs more often than its
contract allows, what has ended stays as it ended, every invariant of the file holds. At
the end everything is answered, and everything must end.
"""

import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from executa_host.actions.faults import ActionsError
from executa_host.actions.operations import Stored
from executa_host.actions.records import ActionRecord, ActionState, Approval, ApprovalStatus, Mode
from executa_host.actions.settings import EngineSettings, Slots
from executa_protocol.actions import TERMINAL
from executa_protocol.chunks import ChunkKind
from tests.actions.rig import ANA, BOSS, Rig
from tests.actions.scripted import ScriptedRun

S = ActionState
CAPABILITIES = ["p.read", "p.put", "p.send", "p.wire", "q.read"]
ATTEMPTS = 3
SMALL = EngineSettings(slots=Slots(in_all=3, per_plugin=2, per_tenant=3))


class EngineMachine(RuleBasedStateMachine):
    """One engine, and the worst that can happen to it."""

    actions = Bundle("actions")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.rig = Rig(Path(self.folder.name) / "a.db", SMALL)
        self.submitted: dict[str, str] = {}
        self.ended: dict[str, ActionRecord] = {}
        self.runs: list[ScriptedRun] = []
        self.is_open = False

    def run(self, work: Any) -> Any:
        return self.loop.run(work)

    @initialize()
    def open(self) -> None:
        self.run(self.rig.__aenter__())
        self.is_open = True

    def _note_runs(self) -> None:
        known = set(map(id, self.runs))
        self.runs += [run for run in self.rig.runner.runs if id(run) not in known]

    def _live(self) -> list[ScriptedRun]:
        return [run for run in self.rig.runner.runs if not run.done]

    async def _settle(self) -> None:
        """Let things go on for a while; how far they get does not matter."""
        for _ in range(3):
            await self.rig.store.counts()
            await asyncio.sleep(0)

    # --- What callers do -----------------------------------------------------------------------

    @rule(
        target=actions,
        capability=st.sampled_from(CAPABILITIES),
        mode=st.sampled_from([Mode.ASYNC, Mode.STREAMING]),
        expires=st.sampled_from([0, 0, 3000]),
    )
    def submit(self, capability: str, mode: Mode, expires: int) -> str:
        members: dict[str, Any] = {"expires_in_ms": expires} if expires else {}
        if capability == "q.read":
            mode = Mode.ASYNC
        record = self.run(self.rig.submit(capability, mode=mode, **members))
        self.submitted[record.action_id] = capability
        return record.action_id

    @rule(action_id=actions)
    def cancel(self, action_id: str) -> None:
        self.run(self.rig.engine.cancel(ANA, action_id))

    @rule(action_id=actions, decide=st.sampled_from(["approve", "deny"]))
    def decide(self, action_id: str, decide: str) -> None:
        async def act() -> None:
            decision: Awaitable[ActionRecord] = getattr(self.rig.engine, decide)(BOSS, action_id)
            answers = await asyncio.gather(decision, return_exceptions=True)
            answer = answers[0]
            if not isinstance(answer, ActionRecord):
                assert isinstance(answer, ActionsError)
                assert answer.code in ("NOT_PENDING_APPROVAL", "ALREADY_DECIDED")

        self.run(act())

    @rule(action_ids=st.lists(actions, min_size=2, max_size=4))
    def cancel_and_decide_at_once(self, action_ids: list[str]) -> None:
        async def act() -> None:
            works = [self.rig.engine.cancel(ANA, each) for each in action_ids]
            works += [self.rig.engine.approve(BOSS, each) for each in action_ids]
            await asyncio.gather(*works, return_exceptions=True)

        self.run(act())

    # --- What plugins do -----------------------------------------------------------------------

    @rule(
        data=st.data(), how=st.sampled_from(["answer", "fail", "lose", "time_out", "acknowledge"])
    )
    def end_an_attempt(self, data: st.DataObject, how: str) -> None:
        live = self._live()
        if live:
            getattr(data.draw(st.sampled_from(live), "run"), how)()

    @rule(data=st.data(), count=st.integers(1, 5))
    def show_chunks(self, data: st.DataObject, count: int) -> None:
        live = self._live()
        if live:
            self.run(self._show(data.draw(st.sampled_from(live), "run"), count))

    async def _show(self, run: ScriptedRun, count: int) -> None:
        for number in range(count):
            run.show(ChunkKind.DATA, number)

    # --- What the world does -------------------------------------------------------------------

    @rule()
    def settle(self) -> None:
        self.run(self._settle())

    @rule(seconds=st.sampled_from([0.5, 1, 2, 10, 61]))
    def let_time_pass(self, seconds: float) -> None:
        self.run(self._pass(seconds))

    async def _pass(self, seconds: float) -> None:
        self.rig.clock.advance(seconds)
        await self._settle()

    @rule()
    def crash(self) -> None:
        self.run(self.rig.reopen())

    # --- What always holds ---------------------------------------------------------------------

    @invariant()
    def nothing_runs_more_often_than_its_contract_allows(self) -> None:
        self._note_runs()
        counts = Counter(run.attempt.action_id for run in self.runs)
        for action_id, count in counts.items():
            mutating = self.submitted[action_id] in ("p.send", "p.wire")
            assert count <= (1 if mutating else ATTEMPTS)
        attempts = [(run.attempt.action_id, run.attempt.attempt) for run in self.runs]
        assert len(set(attempts)) == len(attempts)

    @invariant()
    def what_has_ended_stays_as_it_ended(self) -> None:
        if self.is_open:
            self.run(self._compare())

    async def _compare(self) -> None:
        assert await self.rig.store.check() == []
        for action_id in self.submitted:
            found = await self.rig.store.action(action_id)
            assert isinstance(found, Stored)
            if action_id in self.ended:
                assert found.record == self.ended[action_id]
            elif found.record.state in TERMINAL:
                self.ended[action_id] = found.record

    # --- The end -------------------------------------------------------------------------------

    def teardown(self) -> None:
        if self.is_open:
            try:
                self.run(self._everything_ends())
            finally:
                self.run(self.rig.__aexit__(None, None, None))
        self.loop.close()
        self.folder.cleanup()

    async def _everything_ends(self) -> None:
        async with asyncio.timeout(30):
            left = set(self.submitted)
            while left:
                for run in self._live():
                    run.answer()
                self.rig.clock.advance(5)
                await self._settle()
                for action_id in list(left):
                    record = await self.rig.record(action_id)
                    if record.state in TERMINAL:
                        left.discard(action_id)
                    elif record.state is S.PENDING_APPROVAL and _undecided(record):
                        with contextlib.suppress(ActionsError):  # it expired meanwhile
                            await self.rig.engine.deny(BOSS, action_id)
        await self._compare()
        status = await self.rig.engine.status()
        assert (status.open, status.queued) == (0, 0)


def _undecided(record: ActionRecord) -> bool:
    approval = record.approval
    return isinstance(approval, Approval) and approval.status is ApprovalStatus.REQUESTED


EngineMachine.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
)
TestEngineMachine = EngineMachine.TestCase
