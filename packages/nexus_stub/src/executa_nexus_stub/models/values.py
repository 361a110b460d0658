"""Tool results as prose: the texts inside a JSON value, and whether there are any."""

from typing import Any, Final, cast

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure

_NOT_PROSE: Final = ("id", "_at", "key", "etag", "status", "query", "kind", "type")
"""How names of members end that hold no text worth repeating."""


def decoded(text: str) -> Any:
    """A tool message's text as the value it was; the text itself if it is no JSON."""
    try:
        return codec.decode_any(text.encode())
    except DecodeFailure:
        return text


def texts_in(value: Any) -> list[str]:
    """The texts in a decoded value, in order, each once."""
    found: list[str] = []
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str) and item.strip():
            found.append(item.strip())
        elif isinstance(item, dict):
            members = cast("dict[str, Any]", item)
            pending += [
                member
                for name, member in reversed(members.items())
                if not name.endswith(_NOT_PROSE)
            ]
        elif isinstance(item, list):
            pending += reversed(cast("list[Any]", item))
    return list(dict.fromkeys(found))


def is_empty(value: Any) -> bool:
    """Whether a decoded value says nothing: null, false, zero, or only empty lists and objects."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return all(is_empty(item) for name, item in members.items() if name != "query")
    return value is None or value in ([], "", 0)


def as_sentence(text: str) -> str:
    """`text` with an end."""
    return text if text.endswith((".", "!", "?", "\u2026")) else f"{text}."
