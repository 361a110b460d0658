"""What a peer tells its owner beside messages: diagnostics, every line, its own side's faults.

Nothing that an owner does when it is told something may change what happens on the
wire, so its faults end here, in the loop's exception handler.
"""

from collections import Counter
from typing import TYPE_CHECKING

from executa_protocol.aio.handler import Diagnostic, Direction, Handler, Tap
from executa_protocol.limits import DIAGNOSTIC_CHARS
from executa_protocol.readings import Finding

if TYPE_CHECKING:
    import asyncio


class Reports:
    """The way from one peer to its handler and its tap.

    `counts` says how many diagnostics of each kind there were.
    """

    __slots__ = ("_handler", "_loop", "counts")

    def __init__(self, handler: Handler, loop: "asyncio.AbstractEventLoop") -> None:
        self._handler = handler
        self._loop = loop
        self.counts: Counter[str] = Counter()

    def report(self, kind: str, message: str, sample: bytes = b"") -> None:
        """Count a diagnostic and tell it."""
        self.counts[kind] += 1
        if len(message) > DIAGNOSTIC_CHARS:
            message = f"{message[:DIAGNOSTIC_CHARS]}..."
        try:
            self._handler.on_diagnostic(Diagnostic(kind, message, sample))
        except Exception as fault:  # noqa: BLE001 - see the top
            self._log("on_diagnostic failed", fault)

    def tolerated(self, finding: Finding) -> None:
        """Tell of a departure that was tolerated (R-03)."""
        self.report("tolerated", f"{finding.requirement}: {finding.message}")

    def show(self, tap: Tap, direction: Direction, line: bytes) -> Tap | None:
        """Show a line to the tap; what comes back is the tap of the next line."""
        try:
            tap(direction, line)
        except Exception as fault:  # noqa: BLE001 - see the top
            self._log("a tap failed and is taken off", fault)
            return None
        return tap

    def failed(self, method: object, fault: Exception) -> None:
        """Tell that the handler of a message has failed, which harms that message only."""
        self.report("handler", f"{method!s:.60}: {type(fault).__name__}: {fault}")
        self._log("a handler failed", fault)

    def closed(self, reason: Exception | None) -> None:
        """Tell that the connection has ended."""
        try:
            self._handler.on_closed(reason)
        except Exception as fault:  # noqa: BLE001 - see the top
            self._log("on_closed failed", fault)

    def _log(self, message: str, fault: Exception) -> None:
        self._loop.call_exception_handler({"message": f"executa: {message}", "exception": fault})
