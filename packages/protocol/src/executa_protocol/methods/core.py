"""The host's own methods: initialize, describe, health, shutdown and the cancel notification.

Owns their structs. How an answer to `initialize` is negotiated belongs to
`handshake`, what a manifest says to `manifest`, and an invoke to `invoke`.
"""

from typing import Any, Final, Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

from executa_protocol.methods.reading import (
    Members,
    Shape,
    members_of,
    raw,
    text_of,
)
from executa_protocol.readings import TOLERANT, Reader


class PeerInfo(Struct):
    """Who speaks: a name and a version (seed lifecycle, v2 handshake)."""

    name: str
    version: str = ""


class SamplingOffer(Struct, omit_defaults=True, rename="camel", kw_only=True):
    """What the host samples (seed lifecycle, v2 handshake)."""

    modalities: list[str] | UnsetType = UNSET
    max_tokens_per_call: int | UnsetType = UNSET
    max_calls_per_invoke: int | UnsetType = UNSET
    response_format: list[str] | UnsetType = UNSET


class AgentOffer(Struct, omit_defaults=True):
    """The agent submodes the host runs (R-20)."""

    submodes: list[str] | UnsetType = UNSET


class StorageOffer(Struct, omit_defaults=True):
    """Which stores the host serves (R-20)."""

    kv: bool = False
    files: bool = False


class HostCapabilities(Struct, omit_defaults=True, kw_only=True):
    """What the host offers: the seed's two keys, and v2.1's as further keys (R-20).

    A key that is absent is not offered. The keys beside the seed's are ignored by
    plugins that do not know them.
    """

    sampling: SamplingOffer | UnsetType = UNSET
    file_transport: bool | UnsetType = field(default=UNSET, name="fileTransport")
    agent: AgentOffer | UnsetType = UNSET
    storage: StorageOffer | UnsetType = UNSET
    cancellation: dict[str, Any] | UnsetType = UNSET
    progress: dict[str, Any] | UnsetType = UNSET


class InitializeParams(Struct, omit_defaults=True, kw_only=True):
    """The host's offer (seed lifecycle, v2 handshake). The version stays ``2.0`` (R-20)."""

    protocol_version: str = field(name="protocolVersion")
    client_info: PeerInfo | UnsetType = field(default=UNSET, name="clientInfo")
    capabilities: HostCapabilities | UnsetType = UNSET


class InitializeResult(Struct, omit_defaults=True, kw_only=True):
    """The plugin's answer (seed lifecycle, v2 handshake, Response).

    `capabilities` are the keys of the offer that the plugin will use, each with an
    object that may be empty.
    """

    protocol_version: str = field(name="protocolVersion")
    server_info: PeerInfo | UnsetType = UNSET
    capabilities: dict[str, Any] = field(default_factory=dict[str, Any])


class HealthResult(Struct, omit_defaults=True, kw_only=True):
    """The answer to `health` (seed lifecycle, Health probe)."""

    status: Literal["ready", "error", "initializing"]
    message: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET


_READY_WORDS: Final = ("healthy", "ok")


def _fold_health(members: Members, reader: Reader) -> None:
    status = members.get("status")
    word = text_of(status) if status is not None else None
    if word is not None and word.casefold() in _READY_WORDS:
        reader.tolerate("CORE-002", f"status {word!r} is read as ready")
        members["status"] = raw("ready")
    for name, well_formed in (("message", text_of), ("details", members_of)):
        if name in members and well_formed(members[name]) is None:
            reader.tolerate("CORE-003", f"{name} has the wrong type and is left out")
            del members[name]


_HEALTH: Final = Shape(HealthResult, "INTERNAL_ERROR", fold=_fold_health)


def read_health_result(data: bytes | Raw, reader: Reader = TOLERANT) -> HealthResult:
    """Read a health answer; ``healthy`` and ``ok`` read as ``ready`` (R-28).

    Raises `InvalidParams` for anything that has no status.
    """
    return _HEALTH.read(data, reader)


class CancelParams(Struct, omit_defaults=True, kw_only=True):
    """`executa/cancel`: the host asks the plugin to end one invoke (R-45).

    Sent only to a plugin that took the ``cancellation`` capability. The plugin
    acknowledges by ending that invoke with ``INVOKE_CANCELLED``.
    """

    invoke_id: str
    reason: str | UnsetType = UNSET


_CANCEL: Final = Shape(CancelParams, "INVALID_PARAMS")


def read_cancel(data: bytes | Raw | UnsetType, reader: Reader = TOLERANT) -> CancelParams:
    """Read the params of `executa/cancel`. Raises `InvalidParams`."""
    return _CANCEL.read(data, reader)
