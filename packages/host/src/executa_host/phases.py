"""The phases before the first invoke: initialize with its fallback, and describe.

Speaks over a peer that is already open; spawning and stopping are elsewhere
(seed lifecycle, Five phases; R-20).
"""

import time
from typing import Final

from msgspec import Struct

from executa_protocol import codec
from executa_protocol.aio.peer import Peer
from executa_protocol.codes import METHOD_NOT_FOUND
from executa_protocol.errors import (
    CallTimeout,
    ConnectionLost,
    DecodeFailure,
    ExecutaError,
    RpcError,
    StrictRefusal,
)
from executa_protocol.handshake import FALLBACK, Negotiated, host_offer, read_answer
from executa_protocol.limits import (
    DESCRIBE_TIMEOUT,
    DESCRIBE_TIMEOUT_ONEFILE,
    HEALTH_TIMEOUT,
    INITIALIZE_TIMEOUT,
)
from executa_protocol.manifest import Manifest
from executa_protocol.manifest_reading import read_manifest
from executa_protocol.methods.core import HealthResult, read_health_result
from executa_protocol.readings import Reader


class PhaseFailed(ExecutaError):
    """The plugin did not come through a phase. `gone` says that its process or pipe has ended."""

    def __init__(self, message: str, *, gone: bool = False) -> None:
        super().__init__(message)
        self.gone = gone


class Handshake(Struct, frozen=True):
    """How `initialize` went. `why` says what the fallback to 1.1 is due to, empty without one."""

    negotiated: Negotiated
    ms: float
    why: str = ""
    timed_out: bool = False


async def initialize(peer: Peer, reader: Reader, *, file_transport: bool) -> Handshake:
    """Offer v2 and read the answer. Raises `PhaseFailed` only if the connection ends."""
    started = time.monotonic()
    offer = codec.encode(host_offer(file_transport=file_transport))
    negotiated, why, timed_out = FALLBACK, "", False
    try:
        answer = await peer.request("initialize", offer, INITIALIZE_TIMEOUT)
        negotiated = read_answer(answer, reader)
    except ConnectionLost as fault:
        text = "the plugin ended during initialize"
        raise PhaseFailed(text, gone=True) from fault
    except CallTimeout:
        why, timed_out = f"no answer to initialize within {INITIALIZE_TIMEOUT:g} s", True
    except (RpcError, DecodeFailure, StrictRefusal) as fault:
        # An error or another version means 1.1 (seed lifecycle, Fallback to v1).
        why = f"initialize: {fault}"
    return Handshake(negotiated, ms_since(started), why, timed_out)


async def describe(
    peer: Peer, reader: Reader, *, fallback_name: str, slow: bool = False
) -> tuple[Manifest, float]:
    """Ask for the manifest; it and the milliseconds it took.

    `slow` grants the minute of a one-file binary's first launch. Raises `PhaseFailed`.
    """
    started = time.monotonic()
    limit: Final = DESCRIBE_TIMEOUT_ONEFILE if slow else DESCRIBE_TIMEOUT
    try:
        answer = await peer.request("describe", None, limit)
        manifest = read_manifest(answer, reader=reader, fallback_name=fallback_name)
    except ConnectionLost as fault:
        text = "the plugin ended during describe"
        raise PhaseFailed(text, gone=True) from fault
    except CallTimeout as fault:
        text = f"no answer to describe within {limit:g} s"
        raise PhaseFailed(text) from fault
    except ExecutaError as fault:
        text = f"describe: {fault}"
        raise PhaseFailed(text) from fault
    return manifest, ms_since(started)


async def health(peer: Peer, reader: Reader) -> HealthResult:
    """Probe. A plugin without `health` is healthy (seed lifecycle, Health probe).

    Raises `CallTimeout`, `ConnectionLost` and `DecodeFailure`.
    """
    try:
        answer = await peer.request("health", None, HEALTH_TIMEOUT)
    except RpcError as fault:
        if fault.code == METHOD_NOT_FOUND:
            return HealthResult(status="ready")
        return HealthResult(status="error", message=str(fault))
    return read_health_result(answer, reader)


def ms_since(started: float) -> float:
    """Milliseconds since a `time.monotonic` instant."""
    return round((time.monotonic() - started) * 1000, 3)
