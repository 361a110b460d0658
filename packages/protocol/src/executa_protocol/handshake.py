"""The handshake as two pure steps: what is offered, and what an answer means (R-20, R-21).

Whoever sends and waits is elsewhere. A result that this module cannot read means
protocol 1.1, like silence and like an error: version 1.1 is always there to fall
back to.
"""

from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw, Struct

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.limits import SAMPLING_MAX_CALLS, SAMPLING_MAX_TOKENS
from executa_protocol.methods.core import (
    AgentOffer,
    HostCapabilities,
    InitializeParams,
    PeerInfo,
    SamplingOffer,
    StorageOffer,
)
from executa_protocol.readings import TOLERANT, Reader

V2: Final = "2.0"
V2_1: Final = "2.1"
V1: Final = "1.1"

HANDSHAKE_ID: Final = 0
"""The id of the seed's `initialize`. Ours count on from there."""


class Negotiated(Struct, frozen=True):
    """What both sides agreed on.

    `version` is ``2.0``, ``2.1`` or ``1.1``. `keys` are the host capabilities that the
    plugin took, with their options in `options`; empty for 1.1.
    """

    version: str
    keys: frozenset[str] = frozenset()
    options: dict[str, Any] = {}
    server: PeerInfo | None = None

    @property
    def is_v2(self) -> bool:
        """Whether reverse calls are possible at all."""
        return self.version != V1


FALLBACK: Final = Negotiated(V1)
"""What everything that is no v2 answer means (seed lifecycle, Fallback to v1)."""


def host_offer(
    *,
    sampling: bool = True,
    agent: bool = True,
    storage: bool = True,
    files: bool = True,
    file_transport: bool = True,
    name: str = "matrix-agent",
    version: str = "1.0",
) -> InitializeParams:
    """The offer of the seed with v2.1's keys beside it. Each flag takes its key away."""
    has_store = storage or files
    return InitializeParams(
        protocol_version=V2,
        client_info=PeerInfo(name, version),
        capabilities=HostCapabilities(
            sampling=SamplingOffer(
                modalities=["text"],
                max_tokens_per_call=SAMPLING_MAX_TOKENS,
                max_calls_per_invoke=SAMPLING_MAX_CALLS,
                response_format=["json_object", "json_schema"],
            )
            if sampling
            else UNSET,
            file_transport=True if file_transport else UNSET,
            agent=AgentOffer(submodes=["auto"]) if agent else UNSET,
            storage=StorageOffer(kv=storage, files=files) if has_store else UNSET,
            cancellation={},
            progress={},
        ),
    )


class _Answer(Struct):
    protocolVersion: Any = UNSET  # noqa: N815 - the wire's name, read without a rename
    server_info: Any = UNSET
    serverInfo: Any = UNSET  # noqa: N815 - the field's name
    capabilities: Any = UNSET
    client_capabilities: Any = UNSET


_ANSWER: Final = msgspec.json.Decoder(_Answer)


def read_answer(data: bytes | Raw, reader: Reader = TOLERANT) -> Negotiated:
    """What the plugin's answer to `initialize` means.

    Raises `DecodeFailure` for what is no v2 answer, whose meaning is `FALLBACK`, and
    `StrictRefusal` through `reader`.
    """
    answer = codec.decode(data, _ANSWER)
    version = answer.protocolVersion
    if version not in (V2, V2_1):
        msg = f"protocolVersion: expected {V2!r} or {V2_1!r}, got {version!r:.40}"
        raise DecodeFailure(msg, path="protocolVersion")
    server = answer.server_info
    if server is UNSET and answer.serverInfo is not UNSET:
        reader.tolerate("HAND-001", "server_info is spelled serverInfo")
        server = answer.serverInfo
    if answer.client_capabilities is not UNSET:
        reader.tolerate("HAND-002", "capabilities stand under client_capabilities")
    options: dict[str, Any] = {}
    for name in ("client_capabilities", "capabilities"):
        options |= _capabilities(name, getattr(answer, name), reader)
    return Negotiated(version, frozenset(options), options, _peer_info(server, reader))


def _capabilities(name: str, value: Any, reader: Reader) -> dict[str, Any]:
    """The keys that the plugin takes."""
    if value is UNSET:
        return {}
    if isinstance(value, list):
        names = cast("list[object]", value)
        reader.tolerate("HAND-003", f"{name} is an array of names")
        return {item: {} for item in names if isinstance(item, str)}
    if not isinstance(value, dict):
        reader.tolerate("HAND-004", f"{name} is no object and is read as empty")
        return {}
    return _keys_on(cast("dict[str, Any]", value))


def _keys_on(members: dict[str, Any]) -> dict[str, Any]:
    """The members that count: any value but false and null turns its key on."""
    return {key: item for key, item in members.items() if item is not False and item is not None}


def _peer_info(value: Any, reader: Reader) -> PeerInfo | None:
    if value is UNSET:
        return None
    try:
        return msgspec.convert(value, PeerInfo, strict=False)
    except msgspec.ValidationError:
        reader.tolerate("HAND-005", "server_info has no name and version that are strings")
        return None


# --- The plugin's side ----------------------------------------------------------------


class _Offer(Struct):
    protocolVersion: Any = UNSET  # noqa: N815 - the wire's name, read without a rename
    capabilities: Any = UNSET


_OFFER: Final = msgspec.json.Decoder(_Offer)


def read_offer(data: bytes | Raw) -> dict[str, Any]:
    """The capabilities that a host offers, with their options; what is false is not offered.

    Raises `DecodeFailure` if the offer is no object, or of a version that starts
    with neither 1 nor 2.
    """
    offer = codec.decode(data, _OFFER)
    version = offer.protocolVersion
    if not isinstance(version, str) or version.partition(".")[0] not in ("1", "2"):
        msg = f"protocolVersion: expected {V2!r}, got {version!r:.40}"
        raise DecodeFailure(msg, path="protocolVersion")
    offered = offer.capabilities
    return _keys_on(cast("dict[str, Any]", offered)) if isinstance(offered, dict) else {}


def plugin_answer(
    name: str, version: str, offered: dict[str, Any], wanted: Iterable[str]
) -> dict[str, Any]:
    """The answer of a plugin that wants some of what is offered.

    Of keys that a v2.0 host does not offer nothing is claimed: the manifest and the
    token decide there (R-21).
    """
    return {
        "protocolVersion": V2,
        "server_info": {"name": name, "version": version},
        "capabilities": {key: {} for key in wanted if key in offered},
    }
