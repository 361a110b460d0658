"""Serves `storage/*` and `files/*`: counts the call and hands it to nexus as it came."""

import asyncio

import msgspec
from msgspec import UNSET

from executa_host.reverse.call import Failed, ReverseCall, insist
from executa_protocol import codec
from executa_protocol.codes import wire_error
from executa_protocol.methods.storage import ScopedParams
from executa_protocol.nexus import Nexus


class Storage:
    """Persistent storage by `nexus`, under the invoke's storage token."""

    def __init__(self, nexus: Nexus) -> None:
        self._nexus = nexus

    async def serve(self, call: ReverseCall) -> bytes:
        """Any storage or files method."""
        invoke, method = call.invoke, call.method
        insist(invoke.budget.take_storage())
        token = invoke.grant.storage_token
        params: ScopedParams = msgspec.structs.replace(call.params, context=UNSET)
        try:
            async with asyncio.timeout(method.timeout):
                answer = await self._nexus.storage(
                    "" if token is None else token.value, method.name, codec.encode(params)
                )
        except TimeoutError:
            text = f"no answer from nexus within {method.timeout or 0:g} s"
            raise Failed(wire_error("STORAGE_TIMEOUT", text)) from None
        finally:
            invoke.ledger.storage_calls += 1
        return answer
