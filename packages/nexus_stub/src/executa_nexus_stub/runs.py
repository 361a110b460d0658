"""One agent run: model turns, tool calls that the host executes, frames as they come.

Owns the loop between a model and a host's tools, its frames in the four events of seed
agent-sessions ("Frame shapes"), cancellation and the bounded wait for tool results. It
knows neither tokens nor grants: `agent` decides who may run what and gives each run a
`Plan`. Observed: usage beside the text of the final frame. Assumed: the last turn that
`recursion_limit` allows is offered no tools, so that it has to answer.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from executa_nexus_stub import clock as time
from executa_nexus_stub.clock import Clock
from executa_nexus_stub.models.base import (
    Message,
    Model,
    ModelError,
    ModelRequest,
    RawFrame,
    TextPiece,
    TokenUsage,
    ToolSpec,
    ToolUse,
    TurnEnd,
    TurnEvent,
)
from executa_nexus_stub.models.estimate import count_request, count_tokens
from executa_nexus_stub.refusals import refused
from executa_nexus_stub.sampling import provider_refusal
from executa_protocol import codec, frames
from executa_protocol.errors import DecodeFailure, NotEncodable
from executa_protocol.nexus import ToolOutcome

_AHEAD: Final = 16
"""Events that a model may be ahead of whoever reads the frames."""

_TURN_OVER: Final = object()


class RunPlan(Struct, frozen=True, kw_only=True):
    """What a run may do. `may_call` says whether the model may call a tool of that name."""

    run_id: str
    thread: tuple[Message, ...]
    content: str
    system: str
    model: Model
    tools: tuple[ToolSpec, ...]
    may_call: Callable[[str], bool]
    turns: int
    max_tokens: int
    tool_wait: float
    must_call: bool = False
    tool_id: str = ""


class AgentRunner:
    """A run from its first frame to its last. Its frames are read once."""

    def __init__(self, plan: RunPlan, clock: Clock) -> None:
        self.plan = plan
        self.usage = TokenUsage()
        self.tool_calls = 0
        self.frames = 0
        self.finished = False
        self.ended = False
        self.messages: list[Message] = [Message(role="user", text=plan.content)]
        self._clock = clock
        self._stopped = False
        self._pump: asyncio.Task[None] | None = None
        self._waiting: dict[str, asyncio.Future[ToolOutcome | None]] = {}
        self._answered: dict[str, tuple[bool, bytes]] = {}
        self._text: list[str] = []
        self._turn_text: list[str] = []

    @property
    def pending_count(self) -> int:
        """Tool calls whose results are outstanding."""
        return len(self._waiting)

    def remembered(self) -> list[Message]:
        """What a thread keeps of this run: all of it, or the words alone if it was cut short.

        A call without its result would make the next turn unreadable to some models.
        """
        if not self._stopped:
            return self.messages
        said = Message(role="assistant", text="".join(self._text))
        return [self.messages[0], said] if said.text else []

    def cancel(self) -> bool:
        """Ask the run to end; its last frame says so (R-32). False if it had ended."""
        if self.ended or self._stopped:
            return False
        self._stopped = True
        if self._pump is not None:
            self._pump.cancel()
        for future in self._waiting.values():
            if not future.done():
                future.set_result(None)
        return True

    def post(self, outcome: ToolOutcome) -> None:
        """Take the result of a tool call. Results for an ended run are dropped (R-36).

        The same result again is harmless: its first answer may have been lost. Raises
        `NexusError` for another result, and for a call that nobody made.
        """
        if self.ended or self._stopped:
            return
        result = (outcome.ok, hashlib.sha256(outcome.data).digest())
        before = self._answered.get(outcome.call_id)
        if before == result:
            return
        future = self._waiting.get(outcome.call_id)
        if before is not None or future is None or future.done():
            reason = "was answered otherwise before" if before else "is not waited for"
            raise refused("INVALID_PARAMS", f"call_id: this call {reason}", status=409)
        future.set_result(outcome)
        self._answered[outcome.call_id] = result

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The frames, encoded. Raises `NexusError` when the model fails or oversteps."""
        try:
            async for frame in self._turns():
                self.frames += 1
                yield frame
        except ModelError as fault:
            raise provider_refusal(fault, "AGENT_NEXUS_ERROR") from None
        finally:
            self.ended = True
            self._stop_waiting()
            await self._end_pump()

    async def _turns(self) -> AsyncIterator[bytes]:
        plan = self.plan
        for turn in range(plan.turns):
            last = turn == plan.turns - 1
            left = plan.max_tokens - self.usage.output_tokens
            if left <= 0:
                break
            request = ModelRequest(
                messages=(*plan.thread, *self.messages),
                max_tokens=left,
                system=plan.system,
                tool_id=plan.tool_id,
                tool_choice="required" if plan.must_call and turn == 0 else "auto",
            )
            offered = () if last else plan.tools
            uses: list[ToolUse] = []
            self._turn_text = []
            known = self.usage
            async for event in self._events(request, offered):
                if isinstance(event, TextPiece):
                    if event.text:
                        self._turn_text.append(event.text)
                        yield frames.encode_frame(frames.Delta(event.text))
                elif isinstance(event, RawFrame):
                    yield event.data
                elif isinstance(event, ToolUse):
                    uses.append(self._checked(event, len(uses)))
                else:
                    self.usage += event.usage
            if self.usage == known:  # stopped before the model could count
                said = count_tokens("".join(self._turn_text))
                self.usage += TokenUsage(count_request(request, offered), said)
            self._text += self._turn_text
            self.messages.append(
                Message(role="assistant", text="".join(self._turn_text), calls=tuple(uses))
            )
            if self._stopped or not uses:
                break
            async for frame in self._call(uses):
                yield frame
            if self._stopped:
                break
        self.finished = True  # known before the last frame is read, and nothing comes after it
        yield self._final()

    async def _events(
        self, request: ModelRequest, offered: tuple[ToolSpec, ...]
    ) -> AsyncIterator[TurnEvent]:
        """The turn's events, until it ends or the run is told to stop.

        The model runs in a task of its own, so that `cancel` reaches it while it waits
        for its provider.
        """
        queue: asyncio.Queue[Any] = asyncio.Queue(_AHEAD)

        async def pump() -> None:
            turn = self.plan.model.turn(request, offered)
            try:
                async with contextlib.aclosing(turn):  # type: ignore[type-var]
                    async for event in turn:
                        await queue.put(event)
            except asyncio.CancelledError:
                with contextlib.suppress(asyncio.QueueFull):
                    queue.put_nowait(_TURN_OVER)
                raise
            except Exception as fault:  # noqa: BLE001 - raised again on the reader's side
                await queue.put(fault)
            else:
                await queue.put(_TURN_OVER)

        if self._stopped:
            return
        self._pump = asyncio.create_task(pump(), name=f"model turn of run {self.plan.run_id}")
        while not self._stopped:
            event = await queue.get()
            if event is _TURN_OVER:
                break
            if isinstance(event, BaseException):
                raise event
            yield event
            if isinstance(event, TurnEnd):
                break
        await self._end_pump()

    def _checked(self, use: ToolUse, index: int) -> ToolUse:
        """The call under an id of its own. Raises `NexusError` (-32048) if it is not granted."""
        if not self.plan.may_call(use.name):
            raise refused(
                "AGENT_TOOL_NOT_GRANTED", f"the model called {use.name}, which is not granted"
            )
        call_id = f"call_{self.tool_calls + index + 1}"
        return msgspec.structs.replace(use, call_id=call_id)

    async def _call(self, uses: list[ToolUse]) -> AsyncIterator[bytes]:
        """Ask the host for every call of one turn, then wait for each (R-36)."""
        self.tool_calls += len(uses)
        loop = asyncio.get_running_loop()
        for use in uses:  # waited for before the host can see the frame
            self._waiting[use.call_id] = loop.create_future()
        for use in uses:
            yield frames.encode_frame(frames.HostToolCall(use.name, use.call_id, use.args))
        for use in uses:
            future = self._waiting[use.call_id]
            try:
                outcome = await time.wait_for(self._clock, future, self.plan.tool_wait)
            except TimeoutError:
                outcome = _timed_out(self.plan.run_id, use.call_id)
            finally:
                self._waiting.pop(use.call_id, None)
            if outcome is None:  # stopped
                return
            data = codec.decode_any(outcome.data)
            text = bytes(outcome.data).decode()
            self.messages.append(
                Message(role="tool", text=text, call_id=use.call_id, ok=outcome.ok)
            )
            yield frames.encode_frame(frames.ToolResult(use.call_id, outcome.ok, data))

    def _final(self) -> bytes:
        usage = {
            "inputTokens": self.usage.input_tokens,
            "outputTokens": self.usage.output_tokens,
            "totalTokens": self.usage.total,
        }
        cancelled = True if self._stopped else UNSET
        return frames.encode_frame(frames.Final("".join(self._text), usage, cancelled))

    def _stop_waiting(self) -> None:
        for future in self._waiting.values():
            future.cancel()
        self._waiting.clear()

    async def _end_pump(self) -> None:
        pump, self._pump = self._pump, None
        if pump is not None:
            pump.cancel()
            await asyncio.wait([pump])


def _timed_out(run_id: str, call_id: str) -> ToolOutcome:
    data = msgspec.Raw(b'{"error":"the host gave no result in time","errorCode":"TOOL_TIMEOUT"}')
    return ToolOutcome(run_id, call_id, ok=False, data=data)


def checked_outcome(outcome: ToolOutcome) -> ToolOutcome:
    """The outcome, its data looked at. Raises `NexusError` for what is no JSON."""
    try:
        codec.check_content(bytes(outcome.data))
        codec.encode(codec.decode_any(outcome.data))
    except (DecodeFailure, NotEncodable) as fault:
        raise refused("INVALID_PARAMS", f"data: {fault}") from None
    return outcome
