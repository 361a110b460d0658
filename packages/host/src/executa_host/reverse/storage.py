"""Serves `storage/*` and `files/*`: counts the call and hands it to nexus as it came."""

from typing import cast

import msgspec
from msgspec import UNSET

from executa_host.bounds import Bounds
from executa_host.reverse.call import ReverseCall, insist
from executa_host.reverse.upstream import ask
from executa_protocol import codec
from executa_protocol.limits import STORAGE_TIMEOUT
from executa_protocol.methods.extensions import wants_found
from executa_protocol.methods.storage import ScopedParams
from executa_protocol.nexus import Nexus


class Storage:
    """Persistent storage by `nexus`, under the invoke's storage token."""

    def __init__(self, nexus: Nexus, bounds: Bounds) -> None:
        self._nexus = nexus
        self._bounds = bounds

    async def serve(self, call: ReverseCall) -> bytes:
        """Any storage or files method."""
        invoke, method = call.invoke, call.method
        insist(invoke.budget.take_storage())
        for ledger in invoke.ledgers():
            ledger.storage_calls += 1
        token = invoke.grant.storage_token
        value = "" if token is None else token.value  # the gate has seen that it is there
        params: ScopedParams = msgspec.structs.replace(call.params, context=UNSET)
        asking = self._nexus.storage(value, method.name, codec.encode(params))
        within = method.timeout or STORAGE_TIMEOUT
        answer = await ask(self._bounds, asking, method.chapter, within)
        return _with_found(answer) if wants_found(call.name) else answer


def _with_found(answer: bytes) -> bytes:
    """The older name answers `found` beside `exists`, which are the same."""
    value: object = codec.decode_any(answer)
    if not isinstance(value, dict) or "exists" not in value:
        return answer
    members = cast("dict[str, object]", value)
    return codec.encode(members | {"found": members["exists"]})
