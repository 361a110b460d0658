"""An invoke that somebody holds on to: its result, and the way to end it."""

import asyncio

from executa_host.cancelling import Canceller
from executa_host.invocation import ActiveInvoke, CancelOutcome, InvokeOutcome
from executa_host.reverse.budget import Ledger
from executa_protocol.errors import CallCancelled


class InvokeHandle:
    """One invoke, from `Host.begin` on. It runs whether or not anybody waits for it."""

    def __init__(
        self, active: ActiveInvoke, task: "asyncio.Task[InvokeOutcome]", canceller: Canceller
    ) -> None:
        self._active = active
        self._task = task
        self._canceller = canceller

    def __repr__(self) -> str:
        active = self._active
        return f"InvokeHandle({active.plugin}.{active.tool}, {active.invoke_id})"

    @property
    def invoke_id(self) -> str:
        """32 hexadecimal digits, the same that the plugin sees."""
        return self._active.invoke_id

    @property
    def plugin(self) -> str:
        return self._active.plugin

    @property
    def tool(self) -> str:
        return self._active.tool

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._task.done()

    @property
    def written(self) -> bool:
        """Whether any of its request has reached the plugin."""
        return self._active.written

    @property
    def ledger(self) -> Ledger:
        """What it has used so far, also if it fails."""
        return self._active.ledger

    @property
    def cancel_outcome(self) -> CancelOutcome | None:
        """What became of its cancellation; None if there was none, or not yet."""
        return self._active.verdict

    async def result(self) -> InvokeOutcome:
        """Wait for the outcome. May be awaited by many, and again.

        Cancelling the wait does not cancel the invoke. Raises as `Host.invoke` does, and
        `CallCancelled` for an invoke that was cancelled: its `written` says whether the
        plugin may have seen it.
        """
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if not self._task.cancelled():
                raise
        # It was cancelled before its first step, in which nobody could tell it from this wait.
        text = f"{self.plugin}.{self.tool} was cancelled before it began"
        raise CallCancelled(text, written=False)

    async def cancel(self, reason: str = "") -> CancelOutcome:
        """Ask for its end, and wait until it is known what became of that (R-45).

        Its reverse calls end at once, and a plugin that took the ``cancellation`` capability
        is told. An answer that still comes within 5 s counts. Cancelling again, or what has
        ended, changes nothing.
        """
        self._canceller.cancel(self._active, reason)
        if self._active.call is None:
            self._task.cancel()  # it waits for its plugin, or for nexus
        if not self._task.done():
            await asyncio.wait((self._task,))
        if self._task.cancelled() and self._active.verdict is None:
            self._active.verdict = CancelOutcome.CONFIRMED
        return self._active.verdict or CancelOutcome.COMPLETED_FIRST
