"""The tools of one run that the host executes: begun once each, answered once each (R-36)."""

import asyncio
import contextlib
import logging
import time
from typing import Final

from msgspec import Raw

from executa_host.agent_sessions import AgentSessionEntry
from executa_host.reverse.call import ReverseCall
from executa_host.reverse.nested import ToolOutcomeData, ToolRunner, execute
from executa_protocol import transcript
from executa_protocol.frames import ToolCall
from executa_protocol.limits import AGENT_OTHER_TIMEOUT
from executa_protocol.nexus import Nexus, NexusError, ToolOutcome

_log: Final = logging.getLogger(__name__)

_BROKEN: Final = ToolOutcomeData(
    False, Raw(b'{"errorCode":"INTERNAL_ERROR","message":"the host failed"}'), 0.0, "INTERNAL_ERROR"
)


class HostTools:
    """The tool calls of one run. They end with it, and then nobody wants their results."""

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
        self._run_id = run_id
        self._tasks: set[asyncio.Task[None]] = set()
        self._begun: set[str] = set()

    def begin(self, tool: ToolCall) -> None:
        """Execute a call, unless one of its id was begun before."""
        if tool.call_id in self._begun:
            return
        self._begun.add(tool.call_id)
        task = asyncio.get_running_loop().create_task(self._execute(tool))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Cancel what is under way, and wait until it has gone."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _execute(self, tool: ToolCall) -> None:
        call = self._call
        for ledger in call.invoke.ledgers():
            ledger.nested_calls += 1
        try:
            outcome = await execute(self._runner, call.invoke, tool.name, tool.args)
        except Exception:  # noqa: BLE001 - nexus waits for an answer
            _log.exception("executing %s for a run failed", tool.name)
            outcome = _BROKEN
        if call.connection.followers.callbacks:
            call.connection.emit(
                transcript.ToolExecuted(
                    at=time.time(),
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
        with contextlib.suppress(NexusError, TimeoutError):
            async with asyncio.timeout(AGENT_OTHER_TIMEOUT):
                await self._nexus.post_tool_result(self._entry.minted.token, posted)
