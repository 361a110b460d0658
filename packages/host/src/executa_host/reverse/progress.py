"""Progress of invokes, passed on to whoever follows them, within the field's limits.

At most 50 events a second and 8 KiB each, of invokes that are active. What is over or
wrong is dropped and counted: a notification is never answered.
"""

import logging
import time
from typing import Final

from msgspec import UNSET, Raw

from executa_host.clock import Clock
from executa_host.connection import Connection
from executa_host.invocation import ActiveInvoke
from executa_host.rate import RateLimit
from executa_host.reverse.correlate import correlate
from executa_protocol import transcript
from executa_protocol.envelope import Message
from executa_protocol.errors import DecodeFailure, StrictRefusal
from executa_protocol.gate import Refusal
from executa_protocol.limits import PROGRESS_PER_SECOND
from executa_protocol.methods.progress import read_progress

_log: Final = logging.getLogger(__name__)


def take_progress(connection: Connection, notification: Message, clock: Clock) -> None:
    """Pass one event on, or count it as dropped."""
    # A plugin that fell back to 1.1 has no progress (seed lifecycle, Fallback to v1).
    if notification.params is UNSET or not connection.negotiated.is_v2:
        return
    invoke = correlate(notification.params, connection.invokes)
    if isinstance(invoke, Refusal):
        return
    try:
        params = read_progress(notification.params, connection.reader)
    except (DecodeFailure, StrictRefusal):
        _dropped(invoke)
        return
    if invoke.progress_limit is None:
        invoke.progress_limit = RateLimit(PROGRESS_PER_SECOND, clock.monotonic)
    if not invoke.progress_limit.allow():
        _dropped(invoke)
        return
    for ledger in invoke.ledgers():
        ledger.progress += 1
    data = Raw(b"null") if params.data is UNSET else params.data
    if connection.followers.callbacks:
        connection.emit(
            transcript.Progress(at=time.time(), invoke_id=invoke.invoke_id, params=data)
        )
    if invoke.on_progress is not None:
        try:
            invoke.on_progress(data)
        except Exception:  # noqa: BLE001 - the caller's fault, not the plugin's
            invoke.on_progress = None
            _log.exception("on_progress of invoke %s failed", invoke.invoke_id)


def _dropped(invoke: ActiveInvoke) -> None:
    for ledger in invoke.ledgers():
        ledger.progress_dropped += 1
