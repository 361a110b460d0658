"""The phases before the first invoke: initialize with its fallback, and describe.

Speaks over a peer that is already open; spawning and stopping are elsewhere
(seed lifecycle, Five phases; R-20).
"""

import time
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from executa_host.patience import Patience
from executa_host.runtime import ms_since
from executa_host.spec import PluginSpec
from executa_host.telling import Telling
from executa_protocol import codec, transcript
from executa_protocol.aio.peer import Peer
from executa_protocol.codes import METHOD_NOT_FOUND
from executa_protocol.errors import (
    CallTimeout,
    ConnectionLost,
    ExecutaError,
    PeerViolation,
    RpcError,
)
from executa_protocol.handshake import FALLBACK, Negotiated, host_offer, read_answer
from executa_protocol.manifest import Manifest
from executa_protocol.manifest_reading import read_manifest
from executa_protocol.methods.core import HealthResult, read_health_result
from executa_protocol.readings import Reader

How = Literal["gone", "silent", "unusable"]
"""Its process or pipe ended; it did not answer; it answered, and nothing better will come of
asking again."""


class PhaseFailed(ExecutaError):
    """The plugin did not come through a phase."""

    def __init__(self, message: str, how: How) -> None:
        super().__init__(message)
        self.how: How = how


class Handshake(Struct, frozen=True):
    """How `initialize` went. `why` says what the fallback to 1.1 is due to, empty without one."""

    negotiated: Negotiated
    ms: float
    why: str = ""
    timed_out: bool = False


class Phases:
    """Brings one process up. `agreed` gets what was negotiated, before anything else is asked.

    `first` says that the plugin was never launched before.
    """

    def __init__(
        self,
        peer: Peer,
        spec: PluginSpec,
        telling: Telling,
        patience: Patience,
        *,
        first: bool,
        agreed: Callable[[Negotiated], None],
    ) -> None:
        self._peer = peer
        self._spec = spec
        self._telling = telling
        self._patience = patience
        self._one_file = first and spec.type == "binary"
        self._agreed = agreed

    async def bring_up(self) -> Manifest:
        """Initialize and describe. Raises `PhaseFailed`."""
        handshake = await self._negotiate()
        patience, telling = self._patience, self._telling
        within = patience.describe_onefile if self._one_file else patience.describe
        name = self._spec.tool_id
        manifest, ms = await describe(self._peer, telling.reader, within, fallback_name=name)
        telling.emit(
            transcript.Described(
                at=time.time(),
                version=manifest.version,
                tools=tuple(tool.name for tool in manifest.tools),
                host_capabilities=tuple(manifest.host_capabilities),
                ms=ms,
            )
        )
        if self._one_file and handshake.timed_out:
            # It was still unpacking itself when it was asked.
            await self._negotiate()
        return manifest

    async def _negotiate(self) -> Handshake:
        within, files = self._patience.initialize, self._spec.file_transport
        reader = self._telling.reader
        handshake = await initialize(self._peer, reader, within, file_transport=files)
        negotiated = handshake.negotiated
        self._agreed(negotiated)
        if handshake.why:
            self._telling.noise("fallback", f"protocol 1.1: {handshake.why}")
        self._telling.emit(
            transcript.Negotiated(
                at=time.time(),
                version=negotiated.version,
                capabilities=tuple(sorted(negotiated.keys)),
                ms=handshake.ms,
            )
        )
        return handshake


async def initialize(
    peer: Peer, reader: Reader, within: float, *, file_transport: bool
) -> Handshake:
    """Offer v2 and read the answer. Raises `PhaseFailed` only if the connection ends."""
    started = time.monotonic()
    offer = codec.encode(host_offer(file_transport=file_transport))
    negotiated, why, timed_out = FALLBACK, "", False
    try:
        answer = await peer.request("initialize", offer, within)
        negotiated = read_answer(answer, reader)
    except ConnectionLost as fault:
        text = "the plugin ended during initialize"
        raise PhaseFailed(text, "gone") from fault
    except CallTimeout:
        why, timed_out = f"no answer to initialize within {within:g} s", True
    except (RpcError, PeerViolation) as fault:
        # An error or another version means 1.1 (seed lifecycle, Fallback to v1).
        why = f"initialize: {fault}"
    return Handshake(negotiated, ms_since(started), why, timed_out)


async def describe(
    peer: Peer, reader: Reader, within: float, *, fallback_name: str
) -> tuple[Manifest, float]:
    """Ask for the manifest; it and the milliseconds it took. Raises `PhaseFailed`."""
    started = time.monotonic()
    try:
        answer = await peer.request("describe", None, within)
        manifest = read_manifest(answer, reader=reader, fallback_name=fallback_name)
    except ConnectionLost as fault:
        text = "the plugin ended during describe"
        raise PhaseFailed(text, "gone") from fault
    except CallTimeout as fault:
        text = f"no answer to describe within {within:g} s"
        raise PhaseFailed(text, "silent") from fault
    except ExecutaError as fault:
        text = f"describe: {fault}"
        raise PhaseFailed(text, "unusable") from fault
    return manifest, ms_since(started)


async def health(peer: Peer, reader: Reader, within: float) -> HealthResult:
    """Probe. A plugin without `health` is healthy (seed lifecycle, Health probe).

    Raises `CallTimeout`, `ConnectionLost`, `WriteQueueFull` and `PeerViolation`.
    """
    try:
        answer = await peer.request("health", None, within)
    except RpcError as fault:
        if fault.code == METHOD_NOT_FOUND:
            return HealthResult(status="ready")
        return HealthResult(status="error", message=str(fault))
    return read_health_result(answer, reader)
