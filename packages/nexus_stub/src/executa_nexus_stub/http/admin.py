"""The admin endpoints: look into the stub and change it while it runs.

Owns who may: callers on this machine that are no web page. A browser sends `Origin`,
and a page that had its name point here sends a `Host` that is not a loopback one.
"""

import ipaddress
from typing import Any, Final

import msgspec
from aiohttp import web

from executa_nexus_stub.core import NexusStub
from executa_nexus_stub.faults import FaultConfig
from executa_nexus_stub.http.handlers import answer, decoded
from executa_nexus_stub.http.routes import GrantChange
from executa_nexus_stub.refusals import refused

_CHANGE: Final = msgspec.json.Decoder(GrantChange)
_FAULTS: Final = msgspec.json.Decoder(FaultConfig)


class Admin:
    """The admin endpoints, by the names in `routes`."""

    def __init__(self, stub: NexusStub) -> None:
        self._stub = stub

    async def ledger_get(self, request: web.Request) -> web.Response:
        check_local(request)
        return answer(self._stub.ledger.report())

    async def state_get(self, request: web.Request) -> web.Response:
        check_local(request)
        stub = self._stub
        return answer(
            {
                "open_invokes": stub.open_invokes,
                "in_flight": stub.in_flight,
                "pending_tool_results": stub.pending_count,
                "agent_sessions": stub.agent_sessions,
                "live_tokens": stub.tokens.live_count,
                "pending_uploads": stub.stores.files.pending_uploads,
            }
        )

    async def faults_get(self, request: web.Request) -> web.Response:
        check_local(request)
        return answer(self._faults())

    async def faults_put(self, request: web.Request) -> web.Response:
        check_local(request)
        self._stub.faults.use(await decoded(request, _FAULTS))
        return answer(self._faults())

    async def grants_put(self, request: web.Request) -> web.Response:
        check_local(request)
        wanted = await decoded(request, _CHANGE)
        try:
            grant = self._stub.directory.change(wanted.user_id, wanted.plugin, **wanted.changes)
        except (msgspec.ValidationError, TypeError) as fault:
            raise refused("INVALID_PARAMS", f"changes: {fault}") from None
        return answer({"grants": grant.chapters(), "granted_tools": grant.granted_tools})

    async def keys_rotate_post(self, request: web.Request) -> web.Response:
        check_local(request)
        return answer({"kid": self._stub.tokens.rotate()})

    def _faults(self) -> dict[str, Any]:
        faults = self._stub.faults
        return {
            "seed": faults.seed,
            "rules": msgspec.to_builtins(faults.rules),
            "injected": msgspec.to_builtins(list(faults.injected)),
        }


def check_local(request: web.Request) -> None:
    """Raise `NexusError` (403) unless the caller is on this machine and no web page."""
    host = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
    if not _is_loopback(request.remote or "") or not _is_loopback(host.strip("[]")):
        raise refused("INVALID_REQUEST", "admin: only for callers on this machine", status=403)
    if "Origin" in request.headers:
        raise refused("INVALID_REQUEST", "admin: not for web pages", status=403)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
