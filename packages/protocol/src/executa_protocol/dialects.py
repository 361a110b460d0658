"""What one frame in a dialect of the field says (R-31).

Owns the spellings: which event departs from which requirement of
``requirements/frames.toml``, and where its text, usage or error stands. Everything
here reads a single decoded frame; what depends on the frames before it is the
business of `normaliser`.
"""

from typing import Any, Final, cast

from msgspec import Struct

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.frames import check_depth
from executa_protocol.openai_chunks import text_of

Object = dict[str, Any]

DONE_MARK: Final = b"[DONE]"
"""How OpenAI's streams end, in place of a frame."""

DEPARTURES: Final = {
    "token": "FRAME-001",
    "model_token": "FRAME-001",
    "message": "FRAME-002",
    "complete": "FRAME-003",
    "task_complete": "FRAME-003",
    "queued": "FRAME-004",
    "started": "FRAME-004",
    "keepalive": "FRAME-004",
    "run_meta": "FRAME-005",
    "end": "FRAME-006",
    "done": "FRAME-006",
    "sse": "FRAME-007",
    "task_cancelled": "FRAME-009",
}
"""Events of the field that are none of the seed's, and the requirement each departs from.

`error` is not among them: the seed has no other word for a run that failed.
"""

_ABORTED: Final = frozenset({"aborted", "cancelled", "canceled"})


class Piece(Struct, frozen=True):
    """The next piece of text."""

    text: str


class Message(Struct, frozen=True):
    """A whole message of the model, whose pieces may have come before."""

    text: str


class End(Struct, frozen=True):
    """The run is over. `text` and `usage` are None where the frame does not say."""

    text: str | None = None
    usage: Object | None = None
    cancelled: bool = False


class RunFailure(Struct, frozen=True):
    """Nexus said that the run failed; a host answers it as AGENT_NEXUS_ERROR.

    `code` is nexus's own word or number, empty when it gave none.
    """

    code: str | int
    message: str


Meaning = Piece | Message | End | RunFailure | None
"""What a dialect's frame says; None for one that is only about the stream."""


def meaning_of(event: str, value: Object) -> Meaning:
    """Read a frame whose `event` is in `DEPARTURES`. Raises `DecodeFailure`."""
    match event:
        case "token" | "model_token":
            return Piece(_text(event, value))
        case "message":
            # Messages of another role are the conversation so far, not the answer.
            return Message(_text(event, value)) if value.get("role") in _ASSISTANT else None
        case "complete" | "task_complete":
            text = value.get("text")
            usage = value.get("usage") or value.get("token_usage")
            return End(
                text if isinstance(text, str) else None,
                cast("Object", usage) if isinstance(usage, dict) else None,
                _aborted(value),
            )
        case "task_cancelled":
            return End(cancelled=True)
        case "end" | "done":
            return End()
        case _:  # queued, started, keepalive
            return None


_ASSISTANT: Final = (None, "assistant")


def _aborted(value: Object) -> bool:
    words = (value.get(key) for key in ("stopReason", "status", "reason"))
    return value.get("aborted") is True or any(
        isinstance(word, str) and word in _ABORTED for word in words
    )


def failure_of(value: Object) -> RunFailure:
    """Read an error frame: ``code`` and ``message``, or ``error`` with ``error_type``."""
    error = cast("object", value.get("error"))
    source = cast("Object", error) if isinstance(error, dict) else value
    code = cast("object", value.get("error_type") or source.get("code"))
    message = cast("object", source.get("message") or error)
    return RunFailure(
        code if isinstance(code, str | int) else "",
        message if isinstance(message, str) else "nexus gave no reason",
    )


def payload_of(value: Object) -> object:
    """What an `sse` frame wraps: a member, perhaps as JSON text, or the frame's own members.

    The payload names its kind ``event`` or ``type``; here it is ``event``.
    """
    payload: object = value.get("data", value.get("payload"))
    if payload is None:
        payload = {key: item for key, item in value.items() if key != "event"}
    if isinstance(payload, str):
        text = payload.strip().encode()
        check_depth(text)
        payload = {"done": True} if text == DONE_MARK else codec.decode_any(text)
    if not isinstance(payload, dict):
        return payload
    members = cast("Object", payload)
    if "event" in members or not isinstance(members.get("type"), str):
        return members
    return {"event": members["type"], **members}


def _text(event: str, value: Object) -> str:
    for key in ("text", "content", "message"):
        text = text_of(value.get(key))
        if text is not None:
            return text
    msg = f"a `{event}` frame has no text"
    raise DecodeFailure(msg, path="text")
