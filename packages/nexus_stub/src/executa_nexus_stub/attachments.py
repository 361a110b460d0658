"""Attachments of a run: the texts among them, for models that read nothing else.

Owns their bounds (*observed*: six, 20 MB each). Links and other media are accepted and
not read, because the stub has no network of its own.
"""

import base64
import binascii
from typing import Final

import msgspec
from msgspec import Raw, UnsetType

from executa_nexus_stub.refusals import refused
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.limits import AGENT_MAX_ATTACHMENTS, MIB
from executa_protocol.methods.agent import Attachment

_MAX_BYTES: Final = 20 * MIB
_DECODER: Final = msgspec.json.Decoder(list[Attachment])


def texts(raw: Raw | UnsetType) -> list[str]:
    """The texts that came as base64. Raises `NexusError` for what is no list of attachments."""
    if not raw:
        return []
    try:
        items = codec.decode(raw, _DECODER)
    except DecodeFailure as fault:
        raise refused("INVALID_PARAMS", f"attachments: {fault}") from None
    if len(items) > AGENT_MAX_ATTACHMENTS:
        raise refused("INVALID_PARAMS", f"attachments: at most {AGENT_MAX_ATTACHMENTS}")
    return [text for index, item in enumerate(items) if (text := _text(item, index))]


def _text(item: Attachment, index: int) -> str:
    if not item.data:
        return ""
    if len(item.data) > _MAX_BYTES * 4 // 3 + 4:
        raise refused("INVALID_PARAMS", f"attachments[{index}]: over 20 MB", status=413)
    try:
        data = base64.b64decode(item.data, validate=True)
    except (binascii.Error, ValueError):
        raise refused("INVALID_PARAMS", f"attachments[{index}].data: not base64") from None
    kind = item.mime_type or item.type
    if not kind.startswith(("text", "application/json")):
        return ""
    return data.decode(errors="replace")
