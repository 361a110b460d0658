"""`invoke`: the params with their per-call context, and the result in all its dialects.

Arguments and data stay raw: the host passes them through, the plugin's tool layer
gives them types. Nothing here shows a credential or a token in a repr.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.methods.reading import (
    InvalidParams,
    Members,
    Shape,
    members_of,
    raw,
    text_of,
)
from executa_protocol.readings import TOLERANT, Reader

HIDDEN: Final = "***"
_EMPTY: Final = Raw(b"{}")


class InvokeContext(Struct, omit_defaults=True, kw_only=True, gc=False):
    """What the host injects beside an invoke (seed lifecycle, Per-invoke context injection).

    `credentials` map names to values, for this call only. `invoke_id` is 32
    hexadecimal digits. The tokens are opaque here, live 600 s, and are never
    sent back. `deadline_ms` is milliseconds since the epoch. `parent_invoke_id` is
    the invoke whose agent run made this call (R-36). The tokens from
    `upload_token` on belong to the field's extensions.
    """

    credentials: dict[str, str] | UnsetType = UNSET
    invoke_id: str | UnsetType = UNSET
    sampling_token: str | UnsetType = UNSET
    storage_token: str | UnsetType = UNSET
    deadline_ms: int | float | UnsetType = UNSET
    parent_invoke_id: str | UnsetType = UNSET
    plugin_name: str | UnsetType = UNSET
    upload_token: str | UnsetType = UNSET
    image_token: str | UnsetType = UNSET
    media_token: str | UnsetType = UNSET
    credentials_token: str | UnsetType = UNSET

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={value!r}" for name, value in self._shown())
        return f"InvokeContext({members})"

    def _shown(self) -> list[tuple[str, Any]]:
        shown: list[tuple[str, Any]] = []
        for name in self.__struct_fields__:
            value: Any = getattr(self, name)
            if value is UNSET:
                continue
            if name == "credentials":
                value = dict.fromkeys(value, HIDDEN)
            elif name.endswith("_token"):
                value = HIDDEN
            shown.append((name, value))
        return shown

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What pretty printers show, which look at the members otherwise."""
        return self._shown()


class InvokeParams(Struct, omit_defaults=True, kw_only=True, gc=False):
    """The params of `invoke` (seed lifecycle, Per-invoke context injection).

    `arguments` is a raw JSON object. `invoke_id` and `deadline_ms` also stand in
    `context`; the copies here are for plugins of the field that look here (R-23).
    """

    tool: str
    arguments: Annotated[Raw, Meta(extra_json_schema={"type": "object"})] = field(
        default_factory=lambda: _EMPTY
    )
    context: InvokeContext | UnsetType = UNSET
    invoke_id: str | UnsetType = UNSET
    deadline_ms: int | float | UnsetType = UNSET

    def call_id(self) -> str | None:
        """The invoke's id, from wherever the host put it."""
        if self.context is not UNSET and self.context.invoke_id is not UNSET:
            return self.context.invoke_id
        return None if self.invoke_id is UNSET else self.invoke_id

    def deadline(self) -> float | None:
        """The deadline in milliseconds since the epoch, from wherever the host put it."""
        if self.context is not UNSET and self.context.deadline_ms is not UNSET:
            return self.context.deadline_ms
        return None if self.deadline_ms is UNSET else self.deadline_ms


def _finish_invoke(params: InvokeParams, reader: Reader) -> None:
    """Raise `InvalidParams` unless the tool has a name and the arguments are an object."""
    arguments = bytes(params.arguments)
    if arguments == b"null":
        reader.tolerate("CORE-001", "arguments is null and is read as absent")
        params.arguments = _EMPTY
    elif not arguments.startswith(b"{"):
        raise InvalidParams("INVALID_PARAMS", "arguments: expected an object", path="arguments")
    if not params.tool:
        raise InvalidParams("INVALID_PARAMS", "tool: expected a name", path="tool")


_INVOKE: Final = Shape(InvokeParams, "INVALID_PARAMS", finish=_finish_invoke)


def read_invoke(data: bytes | Raw | UnsetType, reader: Reader = TOLERANT) -> InvokeParams:
    """Read the params of `invoke`. Raises `InvalidParams`."""
    return _INVOKE.read(data, reader)


class InvokeResult(Struct, omit_defaults=True, kw_only=True):
    """What a tool returned.

    `success` is false for a failure in the tool's own domain, with its words in
    `error`; misuse is a JSON-RPC error instead. `data` is raw JSON. `duration_ms`
    is what the plugin measured, in milliseconds.
    """

    success: bool
    data: Raw | UnsetType = UNSET
    error: str | UnsetType = UNSET
    duration_ms: float | UnsetType = UNSET
    tool: str | UnsetType = UNSET


_RESULT: Final = msgspec.json.Decoder(InvokeResult)
_ENVELOPE: Final = frozenset({"data", "error", "duration_ms", "tool"})


def read_invoke_result(data: bytes | Raw, reader: Reader = TOLERANT) -> InvokeResult:
    """Read a result, wrapped as it should be or in one of the field's other ways.

    Bare data is a success. An object of the envelope's own members that lacks only
    `success` is a failure. An error object gives its message. Raises `DecodeFailure`
    for what is no JSON, and `StrictRefusal` through `reader`.
    """
    try:
        return codec.decode(data, _RESULT)
    except DecodeFailure:
        members = members_of(data)
    if members is None or not _is_envelope(members):
        reader.tolerate("CORE-004", "the result is bare data instead of {success, data}")
        return InvokeResult(success=True, data=Raw(bytes(data)))
    if "success" not in members:
        reader.tolerate("CORE-005", "the result has no success and is read as a failure")
        members["success"] = raw(False)
    _fold_error(members, reader)
    for name in ("duration_ms", "tool"):
        if name in members and not _fits(name, members[name]):
            reader.tolerate("CORE-003", f"{name} has the wrong type and is left out")
            del members[name]
    return codec.decode(msgspec.json.encode(members), _RESULT)


def _is_envelope(members: Members) -> bool:
    success = members.get("success")
    if success is not None:
        return bytes(success) in (b"true", b"false")
    return ("data" in members or "error" in members) and members.keys() <= _ENVELOPE


def _fold_error(members: Members, reader: Reader) -> None:
    """Bring `error` to the one form it has: a string, or absent."""
    error = members.get("error")
    if error is None or text_of(error) is not None:
        return
    if bytes(error) == b"null":
        reader.tolerate("CORE-001", "error is null and is read as absent")
        del members["error"]
        return
    inner = members_of(error)
    message = text_of(inner["message"]) if inner is not None and "message" in inner else None
    reader.tolerate("CORE-006", "error is not a string; its message or text is taken")
    members["error"] = raw(message if message is not None else bytes(error).decode())


def _fits(name: str, value: Raw) -> bool:
    if name == "tool":
        return text_of(value) is not None
    return bytes(value)[:1] in b"-0123456789"
