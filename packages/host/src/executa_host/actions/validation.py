"""What no store may be given, found before it joins a transaction with others.

Owns the checks that every backend relies on: ids and keys without control characters,
payloads that are JSON text, moves that the tables allow. Business rules are elsewhere.
"""

import re
from typing import Final

from msgspec import UNSET, Raw

from executa_host.actions.limits import NAME_CHARS, NOTE_CHARS, URL_CHARS
from executa_host.actions.operations import (
    Accept,
    AnyOperation,
    Attach,
    CloseSession,
    Move,
    OpenSession,
    Piece,
    Rotate,
)
from executa_protocol import codec
from executa_protocol.actions import TERMINAL, ActionState, check_move
from executa_protocol.chunks import ChunkKind
from executa_protocol.errors import DecodeFailure, UsageError
from executa_protocol.ids import is_action_id, is_session_id
from executa_protocol.limits import IDEMPOTENCY_KEY_CHARS

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NEWLINES: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def check_name(what: str, value: str, longest: int = NAME_CHARS) -> None:
    """Raise `UsageError` unless `value` is text of 1 to `longest` characters, none a control."""
    if not value:
        raise UsageError(f"{what} is empty")
    check_text(what, value, longest)


def check_text(what: str, value: str, longest: int = NAME_CHARS) -> None:
    """The same, and empty is fine."""
    if len(value) > longest:
        raise UsageError(f"{what} has {len(value):,} characters, at most {longest:,}")
    if value.isascii() and value.isprintable():
        return
    if _CONTROL.search(value):
        raise UsageError(f"{what} holds a control character")
    _check_unicode(what, value)


def check_note(what: str, value: str) -> None:
    """Text for people: lines and tabs are fine too."""
    if len(value) > NOTE_CHARS:
        raise UsageError(f"{what} has {len(value):,} characters, at most {NOTE_CHARS:,}")
    if _NEWLINES.search(value):
        raise UsageError(f"{what} holds a control character")
    _check_unicode(what, value)


def _check_unicode(what: str, value: str) -> None:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{what} holds a lone surrogate") from None


def check_json(what: str, raw: Raw | bytes) -> None:
    """Raise `UsageError` unless `raw` is JSON text."""
    data = bytes(raw)
    try:
        codec.check_content(data)
        if len(data) > _CHECKED_BY_CONTENT:
            codec.decode_any(data)
    except DecodeFailure as fault:
        raise UsageError(f"{what} is no JSON: {fault}") from fault


_CHECKED_BY_CONTENT: Final = 4_096
"""`check_content` decodes up to this size itself."""


def validate(operation: AnyOperation) -> int:
    """Check one operation and give its size in bytes, for the batch. Raises `UsageError`,
    `IllegalMove` among them."""
    match operation:
        case Accept():
            return _accept(operation)
        case Move():
            return _move(operation)
        case OpenSession():
            _session_id(operation.session_id)
            for what in ("tenant", "initiator", "responder"):
                check_name(what, getattr(operation, what))
            check_note("label", operation.label)
        case Attach() | CloseSession():
            _session_id(operation.session_id)
        case Rotate():
            check_name("principal", operation.principal)
            check_name("tenant", operation.tenant)
        case _:
            pass
    return 0


def _accept(op: Accept) -> int:
    if not is_action_id(op.action_id):
        raise UsageError(f"{op.action_id!r} is no action's id")
    check_name("tenant", op.tenant)
    check_name("principal", op.principal)
    check_name("subject", op.subject)
    check_name("capability", op.capability)
    check_text("idempotency_key", op.terms.idempotency_key, IDEMPOTENCY_KEY_CHARS)
    if op.session_id:
        _session_id(op.session_id)
    if op.terms.transaction is not UNSET:
        check_name("transaction_id", op.terms.transaction.transaction_id)
    if op.terms.callback is not UNSET:
        check_name("callback.url", op.terms.callback.url, URL_CHARS)
    check_json("input", op.input)
    return len(memoryview(op.input))


def _move(op: Move) -> int:
    if not op.steps:
        raise UsageError(f"a move of {op.action_id} without a step")
    state, size, ended = op.state, 0, False
    for step in op.steps:
        if isinstance(step, Piece):
            if ended or (state in TERMINAL) != (step.kind is ChunkKind.END):
                raise UsageError(f"a chunk {step.kind} of {op.action_id} in state {state}")
            ended = step.kind is ChunkKind.END
            check_json("chunk", step.data)
            size += len(memoryview(step.data))
        elif isinstance(step, ActionState):
            check_move(state, step, op.reason if _needs_reason(state, step) else None)
            state = step
    if state in TERMINAL and not ended:
        raise UsageError(f"{op.action_id} ends without its end chunk")
    if op.result is not UNSET:
        check_json("result", op.result)
        size += len(memoryview(op.result))
    return size


def _needs_reason(old: ActionState, new: ActionState) -> bool:
    if new is ActionState.QUEUED:
        return old is not ActionState.ACCEPTED
    return old is ActionState.PENDING_APPROVAL and new is ActionState.FAILED


def _session_id(value: str) -> None:
    if not is_session_id(value):
        raise UsageError(f"{value!r} is no session's id")
