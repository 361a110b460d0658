"""The durable part of the demo: work that outlives the host that does it.

A host is killed in the middle of an action and started again, and the session is resumed: its
events go on without a gap or a repeat, which is checked against the whole log. Then another
principal approves an action, and one more is cancelled.
"""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, UnsetType

from executa_host.actions.records import (
    ActionRecord,
    ActionState,
    ApprovalStatus,
    CancelOutcome,
    Effect,
    EventRecord,
    Mode,
)
from executa_host.actions.requests import OWN_WORK, Scope
from executa_host.cli.demo_host import HostProcess
from executa_host.cli.demo_log import faults_in
from executa_host.cli.demo_steps import StepFailed, insist
from executa_host.client import ApiError, Client
from executa_host.client.shapes import Opened
from executa_protocol import codec
from executa_protocol.chunks import ChunkKind
from executa_protocol.errors import ExecutaError

if TYPE_CHECKING:
    from executa_host.cli.demo import Show

PLUGIN: Final = "courier"
PARCELS: Final = 12
KILL_AFTER: Final = 5
"""The host is killed when so many of the parcels have been carried."""
SECONDS: Final = 60.0
"""Bound of the whole part; it takes about three."""

_WAIT: Final = 10.0


class DurablePart:
    """The steps, in order, and what they found. The host records to `record`, start by start."""

    def __init__(self, show: "Show", record: Path | None = None) -> None:
        self._show = show
        self._record = record
        self._seen: list[EventRecord] = []
        self._kills = 0
        self._facts: dict[str, Any] = {}

    async def run(self) -> tuple[dict[str, Any], list[str]]:
        """Walk the steps; the facts, and why they failed if they did."""
        failures: list[str] = []
        try:
            with tempfile.TemporaryDirectory(prefix="executa-demo-") as folder:
                async with (
                    asyncio.timeout(SECONDS),
                    HostProcess(Path(folder), PLUGIN, self._record) as host,
                ):
                    await self._walk(host)
        except ExecutaError as fault:
            failures.append(str(fault))
        except TimeoutError:
            failures.append(f"the durable part took more than {SECONDS:g} s")
        return self._facts, failures

    async def _walk(self, host: HostProcess) -> None:
        self._show.say("6. Durable: executa serve as a process, with a store and keys of its own")
        await self._start(host)
        key = host.key("ada", *OWN_WORK)
        async with Client(host.url, key) as client:
            opened, action_id = await self._begin(client)
        self._show.say("7. The host is killed in the middle, and started again")
        await self._crash(host)
        async with Client(host.url, key) as client:
            await self._resume(client, opened, action_id)
            self._show.say("8. A payment waits until another principal approves it")
            async with Client(host.url, host.key("grace", Scope.READ, Scope.APPROVE)) as approver:
                await self._approve(client, approver)
            self._show.say("9. What nobody wants any more is cancelled")
            await self._cancel(client)
        code = await host.stop()
        insist(code == 0, f"the host ended with {code} when it was asked to stop")
        self._tell("stopped", "The host has drained and left", code=code)

    # --- Steps -----------------------------------------------------------------------------

    async def _start(self, host: HostProcess) -> None:
        pid = await host.start()
        self._tell("served", f"process {pid} listens at {host.url}", pid=pid, url=host.url)

    async def _begin(self, client: Client) -> tuple[Opened, str]:
        """A session and a streaming action in it, followed until half of it is done."""
        contract = await client.capability(f"{PLUGIN}.carry")
        if contract is None or contract.effect is not Effect.IDEMPOTENT:
            raise StepFailed(f"{PLUGIN}.carry is not declared idempotent")
        opened = await client.sessions.open(PLUGIN, label="demo")
        submitted = await client.submit(
            f"{PLUGIN}.carry",
            {"parcels": PARCELS},
            mode=Mode.STREAMING,
            session_id=opened.session.session_id,
        )
        action = submitted.action
        self._tell(
            "submitted",
            f"{action.action_id} is accepted: {action.capability}, {action.mode}, {action.effect}",
            action_id=action.action_id,
            effect=action.effect,
            mode=action.mode,
        )
        await self._follow(client, opened.session.session_id, "", self._half)
        return opened, action.action_id

    def _half(self, event: EventRecord) -> bool:
        return _progressed(event) and sum(map(_progressed, self._seen)) >= KILL_AFTER

    async def _crash(self, host: HostProcess) -> None:
        code = await host.kill()
        self._kills += 1
        self._tell(
            "killed",
            f"SIGKILL after {len(self._seen)} events: exit code {code}",
            events=len(self._seen),
            code=code,
        )
        await self._start(host)

    async def _resume(self, client: Client, opened: Opened, action_id: str) -> None:
        session_id = opened.session.session_id
        resumed = await client.sessions.resume(opened.resume_token, after=self._seen[-1].cursor)
        if isinstance(resumed.replay, UnsetType):
            raise StepFailed(f"the resume brought no replay: {resumed.replay_error}")
        replay = resumed.replay.events
        insist(resumed.resume_token != opened.resume_token, "the token was not rotated")
        self._tell(
            "resumed",
            f"the session is resumed with its token, {len(replay)} events are replayed",
            session_id=session_id,
            replayed=len(replay),
        )
        await self._refuse_spent(client, opened)
        for event in replay:
            self._seen.append(event)
            self._show.action_event(event)
        if not any(_ended(event) for event in replay):
            await self._follow(client, session_id, resumed.replay.cursor, _ended)
        await self._verify(client, session_id, action_id)

    async def _refuse_spent(self, client: Client, opened: Opened) -> None:
        """A resume token opens once."""
        try:
            await client.sessions.resume(opened.resume_token)
        except ApiError as refusal:
            self._tell("refused", f"the old token is refused: {refusal.code}", code=refusal.code)
            return
        raise StepFailed("the old resume token was taken a second time")

    async def _verify(self, client: Client, session_id: str, action_id: str) -> None:
        """The log as it was followed over the crash is the log as it is stored."""
        page = await client.events(session_id)
        whole = [*page.events]
        while len(whole) < len(self._seen) and page.events:
            page = await client.events(session_id, page.cursor)
            whole += page.events
        faults = faults_in(self._seen, whole)
        insist(not faults, "; ".join(faults))
        outcome = await client.result(action_id, _WAIT)
        action = outcome.action
        insist(action.state is ActionState.COMPLETED, f"{action_id} is {action.state}")
        insist(action.attempt == 1 + self._kills, f"{action_id} took {action.attempt} attempts")
        output = outcome.result.output if outcome.result else UNSET
        carried = None if isinstance(output, UnsetType) else codec.decode_any(output)
        insist(carried == {"carried": PARCELS}, f"{action_id} gave {carried}")
        events, attempts = len(self._seen), action.attempt
        self._facts |= {"events": events, "attempts": attempts, "kills": self._kills}
        self._tell(
            "verified",
            f"{events} events over {self._kills} crash: no gap, no repeat, attempt {attempts} done",
            events=events,
            attempts=attempts,
            gaps=0,
            repeats=0,
        )

    async def _approve(self, client: Client, approver: Client) -> None:
        arguments = {"amount": 12.5, "recipient": "the courier"}
        submitted = await client.submit(f"{PLUGIN}.pay", arguments)
        action_id = submitted.action.action_id
        await self._follow(
            client, action_id, "", lambda event: event.state == ActionState.PENDING_APPROVAL
        )
        view = await approver.get(action_id)
        approval = UNSET if view is None else view.action.approval
        if isinstance(approval, UnsetType):
            raise StepFailed(f"{action_id} waits for no approval")
        self._tell("pending", f"it is bound to {approval.content}", content=approval.content)
        await approver.approve(action_id, content=approval.content, note="the parcels are here")
        action = await self._end(client, action_id, ActionState.COMPLETED)
        decided = action.approval
        told = UNSET if isinstance(decided, UnsetType) else (decided.status, decided.decided_by)
        approved = told == (ApprovalStatus.APPROVED, "grace")
        insist(approved, f"{action_id} does not say who approved it")
        self._facts["approved"] = 1
        self._tell("approved", "grace approved it, and it ran to its end", action_id=action_id)

    async def _cancel(self, client: Client) -> None:
        arguments = {"door": "back door"}
        submitted = await client.submit(f"{PLUGIN}.wait", arguments, mode=Mode.STREAMING)
        action_id = submitted.action.action_id
        await self._follow(client, action_id, "", _progressed)
        await client.cancel(action_id, "the door stays shut")
        action = await self._end(client, action_id, ActionState.CANCELLED)
        given = action.cancellation
        outcome = None if isinstance(given, UnsetType) else given.outcome
        insist(outcome is CancelOutcome.CONFIRMED, f"the cancellation ended as {outcome}")
        self._facts["cancelled"] = 1
        self._tell("cancelled", "the plugin confirmed the cancellation", action_id=action_id)

    # --- What they share -------------------------------------------------------------------

    async def _end(self, client: Client, action_id: str, state: ActionState) -> ActionRecord:
        action = (await client.result(action_id, _WAIT)).action
        insist(action.state is state, f"{action_id} is {action.state}, not {state}")
        return action

    async def _follow(
        self, client: Client, subject: str, after: str, until: Callable[[EventRecord], bool]
    ) -> None:
        """Show a log as it grows, up to an event; a session's is kept for the comparison."""

        async def events() -> AsyncGenerator[EventRecord]:
            async with aclosing(client.follow(subject, after)) as log:
                async for event in log:
                    if subject.startswith("ses_"):
                        self._seen.append(event)
                    yield event
                    if until(event):
                        return

        async with aclosing(events()) as shown:
            await self._show.follow(shown)

    def _tell(self, step: str, text: str, **facts: Any) -> None:
        self._show.fact(f"   {text}", {"step": step, **facts})


def _progressed(event: EventRecord) -> bool:
    return not isinstance(event.chunk, UnsetType) and event.chunk.kind is ChunkKind.PROGRESS


def _ended(event: EventRecord) -> bool:
    return not isinstance(event.chunk, UnsetType) and event.chunk.kind is ChunkKind.END
