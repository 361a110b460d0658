"""Serves `agent/session.run`: streams frames from nexus, buffers them, executes host tools.

Buffered (seed agent-sessions, Streaming choice): the plugin gets all frames in one
answer. Runs of one agent session follow each other, those of different ones go side by
side. Everything that a run began ends with it.
"""

import asyncio
import contextlib
import os
import time
from typing import Any, Final

from msgspec import UNSET, Raw, UnsetType

from executa_host.agent_sessions import AgentSessionEntry, AgentSessions
from executa_host.reverse.agent import owner_of
from executa_host.reverse.call import Failed, ReverseCall, insist
from executa_host.reverse.nested import ToolRunner, execute, offered_tools
from executa_protocol import codec, transcript
from executa_protocol.codes import wire_error
from executa_protocol.frames import Final as FinalFrame
from executa_protocol.frames import RunFrame, ToolCall
from executa_protocol.limits import AGENT_RUN_TIMEOUT
from executa_protocol.methods.agent import SessionRunParams
from executa_protocol.nexus import AgentRun, Nexus, NexusError, ToolOutcome
from executa_protocol.normaliser import FrameNormaliser
from executa_protocol.runs import RunBuffer

_USAGE_WORDS: Final = ("outputTokens", "output_tokens", "completion_tokens")
_GONE: Final = (401, 404, 410)


class AgentRuns:
    """Runs of agent sessions, over the cache, `nexus`, and the host's own tools."""

    def __init__(self, nexus: Nexus, cache: AgentSessions, runner: ToolRunner) -> None:
        self._nexus = nexus
        self._cache = cache
        self._runner = runner

    async def run(self, call: ReverseCall) -> bytes:
        """`agent/session.run` (R-31 to R-36)."""
        params: SessionRunParams = call.params
        entry = self._cache.find(params.app_session_uuid, owner_of(call))
        run_id = os.urandom(16).hex() if params.run_id is UNSET else params.run_id
        _check(call, entry, params, run_id)
        insist(call.invoke.budget.reserve_run())
        cancelled = entry.runs[run_id] = asyncio.Event()
        call.invoke.runs.add(params.app_session_uuid)
        run = _LiveRun(self._nexus, self._runner, call, entry, run_id)
        try:
            await self._to_the_end(run, entry, cancelled)
        except NexusError as fault:
            if fault.status in _GONE:
                self._cache.discard(params.app_session_uuid)
            raise
        finally:
            del entry.runs[run_id]
            call.invoke.runs.discard(params.app_session_uuid)
            self._account(call, run)
        self._cache.slide(entry)
        return run.buffer.encode(strict=call.connection.strict)

    async def _to_the_end(
        self, run: "_LiveRun", entry: AgentSessionEntry, cancelled: asyncio.Event
    ) -> None:
        """Pump until the run is over, cancelled, or out of time."""
        loop = asyncio.get_running_loop()
        pumping = loop.create_task(_in_turn(entry, run))
        stopping = loop.create_task(cancelled.wait())
        try:
            done, _ = await asyncio.wait(
                (pumping, stopping),
                timeout=AGENT_RUN_TIMEOUT,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if pumping in done:
                pumping.result()
            elif not done:
                text = f"the run took longer than {AGENT_RUN_TIMEOUT:g} s"
                raise Failed(wire_error("AGENT_NEXUS_ERROR", text))
            else:
                await _end(pumping)
                run.cancel()
        finally:
            stopping.cancel()
            await _end(pumping)

    @staticmethod
    def _account(call: ReverseCall, run: "_LiveRun") -> None:
        call.invoke.budget.settle(0, run.tokens)
        call.tokens = run.tokens
        ledger = call.invoke.ledger
        ledger.agent_runs += 1
        ledger.tokens += run.tokens
        ledger.frames += len(run.buffer)
        ledger.frame_bytes += run.buffer.size


async def _in_turn(entry: AgentSessionEntry, run: "_LiveRun") -> None:
    async with entry.turn:
        await run.pump()


async def _end(task: "asyncio.Task[None]") -> None:
    """Cancel a task and wait until it has gone; what it says then no longer matters."""
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()


def _check(
    call: ReverseCall, entry: AgentSessionEntry, params: SessionRunParams, run_id: str
) -> None:
    """What the cache and the grant say before anything is spent."""
    if run_id in entry.runs:
        raise Failed(wire_error("INVALID_PARAMS", f"run_id: {run_id!r} is running already"))
    for ancestor in call.invoke.lineage()[1:]:
        if params.app_session_uuid in ancestor.runs:
            text = "an invoke that this one is nested in is running this agent session"
            raise Failed(wire_error("AGENT_RUN_RECURSION", text))
    for tool in params.allowed_tools or ():
        if not entry.covers(tool):
            text = f"allowed_tools: {tool!r} is not granted to this agent session"
            raise Failed(wire_error("AGENT_TOOL_NOT_GRANTED", text))


class _LiveRun:
    """One run while it streams: its frames so far, and the tools it has under way."""

    def __init__(
        self,
        nexus: Nexus,
        runner: ToolRunner,
        call: ReverseCall,
        entry: AgentSessionEntry,
        run_id: str,
    ) -> None:
        self._nexus = nexus
        self._runner = runner
        self._call = call
        self._entry = entry
        self._params: SessionRunParams = call.params
        self._run_id = run_id
        self._normaliser = FrameNormaliser(call.connection.reader())
        self._tools: set[asyncio.Task[None]] = set()
        self._called: set[str] = set()
        self.buffer = RunBuffer(run_id)
        self.tokens = 0

    async def pump(self) -> None:
        """Take frames until the final one. Raises what ends the run otherwise."""
        stream = self._nexus.run_agent(self._entry.minted.token, self._request())
        try:
            async for raw in stream:
                self._take(self._normaliser.feed(raw))
                if self._normaliser.ended:
                    break
            else:
                self._take(self._normaliser.close())
        finally:
            # Closing the stream ends the run upstream, whatever ended it here.
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
            await self._end_tools()
        failure = self._normaliser.failure
        if failure is not None:
            text = f"nexus: {failure.message}"
            raise Failed(wire_error("AGENT_NEXUS_ERROR", text, upstream=failure.code or None))

    def cancel(self) -> None:
        """End with the frames so far and a final frame that says so (R-32)."""
        self._take(self._normaliser.cancel())

    def _request(self) -> AgentRun:
        params, invoke = self._params, self._call.invoke
        caps = invoke.budget.caps
        wanted = caps.tokens_per_call if params.max_tokens is UNSET else params.max_tokens
        return AgentRun(
            run_id=self._run_id,
            content=params.content,
            tools=offered_tools(self._runner, invoke.user_id, self._allowed),
            allowed_tools=_tuple(params.allowed_tools),
            recursion_limit=params.recursion_limit,
            max_tokens=max(1, min(wanted, invoke.budget.tokens_left)),
            system=params.system_prompt,
            model_preferences=_raw(params.model_preferences),
            attachments=_raw(params.attachments),
        )

    def _allowed(self, tool: str) -> bool:
        narrowed = self._params.allowed_tools
        return self._entry.covers(tool) and (narrowed is UNSET or tool in narrowed)

    def _take(self, frames: list[RunFrame]) -> None:
        call = self._call
        for frame in frames:
            self.buffer.add(frame)
            call.connection.emit(
                transcript.RunFrame(
                    at=time.time(),
                    plugin=call.connection.name,
                    invoke_id=call.invoke.invoke_id,
                    run_id=self._run_id,
                    frame=Raw(frame.raw),
                )
            )
            if frame.event == "tool_call":
                self._tool_called(frame)
            elif frame.event == "final":
                self.tokens = _tokens(frame)

    # --- Tools that the host executes (R-36) --------------------------------------------

    def _tool_called(self, frame: RunFrame) -> None:
        tool = frame.read()
        if not isinstance(tool, ToolCall):
            return
        if not self._allowed(tool.name):
            text = f"the model called {tool.name!r}, which is not granted"
            raise Failed(wire_error("AGENT_TOOL_NOT_GRANTED", text))
        if not frame.host_executes or tool.call_id in self._called:
            return
        self._called.add(tool.call_id)
        task = asyncio.get_running_loop().create_task(self._execute(tool))
        self._tools.add(task)
        task.add_done_callback(self._tools.discard)

    async def _execute(self, tool: ToolCall) -> None:
        call = self._call
        outcome = await execute(self._runner, call.invoke, tool.name, tool.args)
        call.invoke.ledger.nested_calls += 1
        call.connection.emit(
            transcript.ToolExecuted(
                at=time.time(),
                plugin=call.connection.name,
                invoke_id=call.invoke.invoke_id,
                run_id=self._run_id,
                call_id=tool.call_id,
                name=tool.name,
                ok=outcome.ok,
                ms=outcome.ms,
                reason=outcome.reason,
            )
        )
        posted = ToolOutcome(self._run_id, tool.call_id, outcome.ok, outcome.data)
        # A run that has ended meanwhile wants no result; one that waits gives up by itself.
        with contextlib.suppress(NexusError):
            await self._nexus.post_tool_result(self._entry.minted.token, posted)

    async def _end_tools(self) -> None:
        for task in self._tools:
            task.cancel()
        if self._tools:
            await asyncio.wait(self._tools)


def _tokens(frame: RunFrame) -> int:
    """The output tokens that a final frame tells, in whichever spelling."""
    final = frame.read()
    if not isinstance(final, FinalFrame) or final.usage is UNSET:
        return 0
    for word in _USAGE_WORDS:
        value = final.usage.get(word)
        if isinstance(value, int) and value > 0:
            return value
    return 0


def _tuple(items: list[str] | UnsetType) -> tuple[str, ...] | UnsetType:
    return UNSET if items is UNSET else tuple(items)


def _raw(value: Any) -> Raw | UnsetType:
    return UNSET if value is UNSET else Raw(codec.encode(value))
