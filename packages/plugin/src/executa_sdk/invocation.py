"""One call in flight: who asked, and how it stands.

Knows neither how a tool runs nor how it is answered; `server` does. `reverse` is the
call's way to the host.
"""

import math
import threading
import time
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from executa_protocol.envelope import Id
from executa_protocol.errors import CallCancelled, UsageError
from executa_protocol.methods.invoke import InvokeParams
from executa_sdk.bridge import Bridge
from executa_sdk.tool import Tool

if TYPE_CHECKING:
    import asyncio

    from executa_sdk.connection import Connection
    from executa_sdk.reverse import Reverse


class Invocation(Struct, eq=False):
    """A call of a tool. Threads may read everything here; the loop writes it.

    `id` is the JSON-RPC id that is answered, `invoke_id` the host's id of the invoke.
    `started` is a `time.perf_counter` instant, `key` what the call is found by while it is
    open, None until then. `cancelled` holds once the host has asked for the end, with its
    `reason`; `ended` once the tool has returned. `claim` is taken by whoever decides whether
    a thread starts it.
    """

    connection: "Connection"
    id: Id
    tool: Tool
    params: InvokeParams
    invoke_id: str | None
    bridge: Bridge
    started: float
    key: object = None
    cancelled: bool = False
    reason: str = ""
    ended: bool = False
    progressed: float = -math.inf
    task: "asyncio.Task[None] | None" = None
    claim: "threading.Lock | None" = None

    @property
    def caller(self) -> "Reverse":
        """The way to the host for clients that are used within this call."""
        from executa_sdk.reverse import Reverse  # noqa: PLC0415 - most calls never call back

        return Reverse(self, self.bridge)

    @property
    def is_nested(self) -> bool:
        """Whether an agent run of an ancestor made this call (R-36)."""
        context = self.params.context
        return context is not UNSET and context.parent_invoke_id is not UNSET

    def elapsed_ms(self) -> float:
        """Milliseconds since the call came."""
        return (time.perf_counter() - self.started) * 1000

    def check(self) -> None:
        """Raise `CallCancelled` or `UsageError` unless the call still runs."""
        if self.cancelled:
            msg = f"the invoke was cancelled: {self.reason or 'no reason given'}"
            raise CallCancelled(msg)
        if self.ended:
            msg = "this invoke has ended; calls to the host belong inside the tool"
            raise UsageError(msg)

    def claimed(self) -> bool:
        """Whether whoever asks is the first to decide if a thread starts the call."""
        return self.claim is not None and self.claim.acquire(blocking=False)
