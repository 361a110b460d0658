"""What the params of several methods share: the call context and text content."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

Metadata = dict[str, Any]
"""Free-form notes of the caller. The convention ``executa_invoke_id`` is read by R-23."""


class CallContext(Struct, omit_defaults=True, kw_only=True):
    """`params.context` of a reverse call.

    `invoke_id` says which invoke the call belongs to: 32 hexadecimal digits as the
    host gave them (R-23).
    """

    invoke_id: str | UnsetType = UNSET


class Params(Struct, omit_defaults=True, kw_only=True):
    """The members that every reverse call has. Absent ones are `UNSET` and never null."""

    context: CallContext | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class TextContent(Struct):
    """Content of a message: text is the only kind (seed lifecycle, v2 handshake: modalities)."""

    type: Literal["text"]
    text: str


class Empty(Struct):
    """An object without members that mean anything."""
