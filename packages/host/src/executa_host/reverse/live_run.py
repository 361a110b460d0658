"""One run of an agent session while it lives: its turn, its frames, its end (R-31, R-32, R-36).

Everything that a run began ends with it: its stream, the run upstream, the tools that it
has under way. Whether it may begin, and what it may use, was decided before.
"""

import asyncio
import logging
import time
from functools import partial
from typing import Any, Final

from msgspec import UNSET, Raw, UnsetType

from executa_host.agent_sessions import AgentSessionEntry
from executa_host.invocation import ActiveInvoke
from executa_host.reverse.call import Failed, ReverseCall
from executa_host.reverse.host_tools import HostTools
from executa_host.reverse.nested import ToolRunner, offered_tools
from executa_host.runtime import Runtime
from executa_protocol import codec, transcript
from executa_protocol.codes import wire_error
from executa_protocol.errors import DecodeFailure, StrictRefusal
from executa_protocol.frames import Final as FinalFrame
from executa_protocol.frames import RunFrame, ToolCall
from executa_protocol.limits import AGENT_RUN_TIMEOUT
from executa_protocol.methods.agent import AgentSessionRunParams
from executa_protocol.nexus import AgentRun, Nexus, NexusError
from executa_protocol.normaliser import FrameNormaliser
from executa_protocol.runs import RunBuffer

_log: Final = logging.getLogger(__name__)

LAST_FRAME_WAIT: Final = 2.0
"""Seconds in which a cancelled run's own last frame, which tells its usage, may still come."""

_USAGE_WORDS: Final = ("outputTokens", "output_tokens", "completion_tokens")
_CANCELLED: Final = RunFrame(codec.encode(FinalFrame("", UNSET, True)), "final")


class BufferedRun:
    """A run from its place in the queue to its last frame. `tokens` is what it used.

    Whoever made it calls `over` at the end, whatever came of it.
    """

    def __init__(
        self,
        call: ReverseCall,
        entry: AgentSessionEntry,
        run_id: str,
        max_tokens: int,
        *,
        nexus: Nexus,
        runner: ToolRunner,
        runtime: Runtime,
    ) -> None:
        self.invoke: ActiveInvoke = call.invoke
        self.buffer = RunBuffer(run_id)
        self.tokens = 0
        self._nexus = nexus
        self._runner = runner
        self._runtime = runtime
        self._call = call
        self._entry = entry
        self._params: AgentSessionRunParams = call.params
        self._run_id = run_id
        self._max_tokens = max_tokens
        self._normaliser = FrameNormaliser(call.connection.reader)
        self._tools = HostTools(nexus, runner, call, entry, run_id)
        self._pumping: asyncio.Task[None] | None = None
        self._streaming = False
        self._told = False  # nexus has been asked to end it
        self._asked = False  # somebody wants its end
        self._cancelled = False  # and its last frame says so
        self._over = asyncio.Event()

    async def to_the_end(self) -> None:
        """Wait for its turn and stream until the last frame, a cancel, or the time-out.

        Raises what ended it otherwise; then the run upstream is cancelled too.
        """
        self._pumping = pumping = asyncio.get_running_loop().create_task(self._in_turn())
        if self._asked:  # before it came here
            pumping.cancel()
        try:
            await asyncio.wait((pumping,), timeout=AGENT_RUN_TIMEOUT)
            if not pumping.done():
                text = f"the run took longer than {AGENT_RUN_TIMEOUT:g} s"
                raise Failed(wire_error("AGENT_NEXUS_ERROR", text))
            self._finish(pumping)
        finally:
            await self._clean_up(pumping)

    def over(self) -> None:
        """It has ended, and nothing of it is left."""
        self._over.set()

    async def cancel(self) -> bool:
        """End it (R-32): the pending `run` answers with the frames so far and a last one.

        False if it had ended by itself.
        """
        if not self._asked and not self._over.is_set():
            self._asked = True
            if self._streaming:
                # Its own last frame is worth a moment: it says what the run has used.
                self._cancel_upstream()
                loop = asyncio.get_running_loop()
                loop.call_later(LAST_FRAME_WAIT, self._stop)
            else:
                self._stop()
        await self._over.wait()
        return self._cancelled

    def _stop(self) -> None:
        if self._pumping is not None:
            self._pumping.cancel()

    def _cancel_upstream(self) -> None:
        if self._told:
            return
        self._told = True
        work = partial(self._nexus.cancel_run, self._entry.minted.token, self._run_id)
        within = self._runtime.patience.cleanup
        self._runtime.background.run(work, f"cancelling agent run {self._run_id}", within)

    def _finish(self, pumping: "asyncio.Task[None]") -> None:
        """Raise what ended the stream, unless it was asked to end."""
        fault = None if pumping.cancelled() else pumping.exception()
        if self._asked and (pumping.cancelled() or isinstance(fault, NexusError | Failed)):
            self._take(self._normaliser.cancel() or [_CANCELLED])
        else:
            pumping.result()

    async def _clean_up(self, pumping: "asyncio.Task[None]") -> None:
        """Nothing goes on, here or upstream."""
        if self._streaming and not (self._normaliser.ended or self._refused()):
            self._cancel_upstream()
        pumping.cancel()
        self._runtime.background.keep(pumping)
        _, left = await asyncio.wait((pumping,), timeout=self._runtime.patience.cleanup)
        if left:
            _log.error("the stream of agent run %s does not end", self._run_id)

    def _refused(self) -> bool:
        """Whether nexus did not even begin."""
        pumping = self._pumping
        if pumping is None or not pumping.done() or pumping.cancelled() or len(self.buffer):
            return False
        return isinstance(pumping.exception(), NexusError)

    # --- The stream ------------------------------------------------------------------------

    async def _in_turn(self) -> None:
        async with self._entry.turn:
            self._streaming = True
            try:
                await self._pump()
            finally:
                await self._tools.end()

    async def _pump(self) -> None:
        """Take frames until the final one. Raises what ends the run otherwise."""
        normaliser = self._normaliser
        stream = self._nexus.run_agent(self._entry.minted.token, self._request())
        try:
            async for raw in stream:
                self._take(self._read(raw))
                if normaliser.ended:
                    break
            else:
                self._take(normaliser.close())
        finally:
            # Closing the stream ends the run upstream, whatever ended it here.
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        if normaliser.failure is not None:
            text, code = f"nexus: {normaliser.failure.message}", normaliser.failure.code
            raise Failed(wire_error("AGENT_NEXUS_ERROR", text, upstream=code or None))

    def _read(self, raw: bytes) -> list[RunFrame]:
        """One frame of nexus in the seed's spelling; one that cannot be read is lost alone."""
        try:
            return self._normaliser.feed(raw)
        except DecodeFailure as fault:
            self._call.connection.telling.noise(
                "frame", f"nexus sent what is no frame: {fault}", raw
            )
            return []
        except StrictRefusal as refusal:
            raise Failed(wire_error("AGENT_NEXUS_ERROR", f"nexus: {refusal}")) from None

    def _request(self) -> AgentRun:
        params = self._params
        return AgentRun(
            run_id=self._run_id,
            content=params.content,
            tools=offered_tools(self._runner, self.invoke.user_id, self._allowed),
            allowed_tools=_tuple(params.allowed_tools),
            recursion_limit=params.recursion_limit,
            max_tokens=self._max_tokens,
            system=params.system_prompt,
            model_preferences=_raw(params.model_preferences),
            attachments=_raw(params.attachments),
        )

    def _allowed(self, tool: str) -> bool:
        narrowed = self._params.allowed_tools
        return self._entry.covers(tool) and (narrowed is UNSET or tool in narrowed)

    def _take(self, frames: list[RunFrame]) -> None:
        for frame in frames:
            self.buffer.add(frame)
            for ledger in self.invoke.ledgers():
                ledger.frames += 1
                ledger.frame_bytes += len(frame.raw)
            if self._call.connection.followers.callbacks:
                self._tell(frame)
            if frame.event == "tool_call":
                self._tool_called(frame)
            elif frame.event == "final":
                self._last(frame)

    def _tell(self, frame: RunFrame) -> None:
        self._call.connection.emit(
            transcript.RunFrame(
                at=time.time(),
                invoke_id=self.invoke.invoke_id,
                run_id=self._run_id,
                frame=Raw(frame.raw),
            )
        )

    def _tool_called(self, frame: RunFrame) -> None:
        tool = frame.read()
        if not isinstance(tool, ToolCall):
            return
        if not self._allowed(tool.name):
            text = f"the model called {tool.name[:80]!r}, which is not granted"
            raise Failed(wire_error("AGENT_TOOL_NOT_GRANTED", text))
        if frame.host_executes:
            self._tools.begin(tool)

    def _last(self, frame: RunFrame) -> None:
        final = frame.read()
        if isinstance(final, FinalFrame):
            self._cancelled = final.cancelled is True
            self.tokens = _tokens(final)
            for ledger in self.invoke.ledgers():
                ledger.tokens += self.tokens


def _tokens(final: FinalFrame) -> int:
    """The output tokens that a final frame tells, in whichever spelling."""
    for word in _USAGE_WORDS if final.usage is not UNSET else ():
        value = (final.usage or {}).get(word)
        if isinstance(value, int) and value > 0:
            return value
    return 0


def _tuple(items: list[str] | UnsetType) -> tuple[str, ...] | UnsetType:
    return UNSET if items is UNSET else tuple(items)


def _raw(value: Any) -> Raw | UnsetType:
    return UNSET if value is UNSET else Raw(codec.encode(value))
