"""What the scripted model says: completions, JSON of a wanted shape, the frames of a run."""

from typing import Any, Final, cast

from msgspec import UNSET

from executa_protocol.codec import decode_any, encode
from executa_protocol.faults import as_object

Object = dict[str, Any]

TEXT: Final = "A scripted answer."
"""What the model says."""


def completion(text: str = TEXT) -> Object:
    """The result of a sampling call."""
    return {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": "scripted",
        "stopReason": "endTurn",
        "usage": {"inputTokens": 8, "outputTokens": 4, "totalTokens": 12},
    }


def said(params: Any) -> str:
    """What the model says: JSON where a response format asks for it."""
    form = getattr(params, "response_format", UNSET)
    wanted: Object = {} if form is UNSET else decode_any(encode(form))
    if wanted.get("type") not in ("json_object", "json_schema"):
        return TEXT
    inner = as_object(wanted.get("json_schema")) or {}
    return encode(instance(inner.get("schema", {"required": ["text"]}))).decode()


def instance(of: Any) -> Any:
    """A small value that meets a JSON Schema, as far as such schemas usually go."""
    schema = as_object(of) or {}
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    known = as_object(schema.get("properties"))
    kind: Any = schema.get("type", "object" if known or "required" in schema else "string")
    if isinstance(kind, list):
        kind = cast("list[Any]", kind)[0]
    if kind == "object":
        names: list[str] = schema.get("required") or list(known or {})
        return {name: instance((known or {}).get(name)) for name in names}
    if kind == "array":
        return [instance(schema.get("items"))] * max(1, int(schema.get("minItems", 1)))
    values: Object = {"integer": 1, "number": 1.5, "boolean": True, "null": None}
    low = schema.get("minimum")
    return low if low is not None and kind in ("integer", "number") else values.get(kind, TEXT)


def frames(text: str = TEXT) -> list[Object]:
    """The frames of a run (seed agent-sessions, Frame shapes)."""
    usage = {"inputTokens": 8, "outputTokens": 4, "totalTokens": 12}
    return [
        {"event": "delta", "text": text},
        {"event": "final", "text": text, "usage": usage},
    ]
