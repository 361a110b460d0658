"""Nexus as seen past the plugin: what it grants, and what lies in the plugin's storage.

For each look an invoke of the plugin is opened at nexus and closed again, so that this works
with any nexus. The plugin hears nothing of it.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from executa_host.cli import exits
from executa_host.request import new_invoke_id
from executa_host.runtime import LOCAL_USER
from executa_host.spec import PluginSpec
from executa_protocol import codec
from executa_protocol.manifest import Manifest
from executa_protocol.nexus import InvokeGrant, InvokeOpening, Nexus

SCOPES: Final = ("user", "tool")
"""What a plugin's storage token opens outside an app (R-29)."""

_LOOK: Final = "look"
"""The tool that nexus is told: there is none of this name behind it."""

_STORES: Final = ("aps.kv", "aps.files")


class Cloud:
    """One plugin at one nexus."""

    def __init__(self, nexus: Nexus, spec: PluginSpec) -> None:
        self._nexus = nexus
        self._spec = spec

    async def grant(self, manifest: Manifest) -> InvokeGrant:
        """What an invoke would be given now. Raises `NexusError`."""
        names = [credential.name for credential in manifest.credentials]
        async with self._opened(sorted(manifest.declared()), names) as grant:
            return grant

    async def listing(self, prefix: str = "") -> list[dict[str, Any]]:
        """Every key and file, with its scope and kind. Raises `NexusError`, `exits.Stop`."""
        rows: list[dict[str, Any]] = []
        async with self._storage() as call:
            for kind, method in (("key", "storage/list"), ("file", "files/list")):
                for scope in SCOPES:
                    cursor: str | None = None
                    while True:
                        more = {"cursor": cursor} if cursor else {}
                        page = await call(method, {"scope": scope, "prefix": prefix, **more})
                        rows += [{"kind": kind, "scope": scope, **item} for item in page["items"]]
                        cursor = page.get("next_cursor")
                        if not cursor:
                            break
        return rows

    async def get(self, key: str, scopes: Sequence[str]) -> Any:
        """The answer of the first scope that has the key. Raises `exits.Stop` if none has."""
        async with self._storage() as call:
            for scope in scopes:
                found = await call("storage/get", {"scope": scope, "key": key})
                if found["exists"]:
                    return {"scope": scope, **found}
        raise exits.Stop(
            f"there is no key {key[:60]!r} in scope {' or '.join(scopes)}", exits.FAILED
        )

    async def remove(self, key: str, scopes: Sequence[str]) -> str:
        """Take the key away, and say from which scope. Raises `exits.Stop` if none has it."""
        async with self._storage() as call:
            for scope in scopes:
                if (await call("storage/delete", {"scope": scope, "key": key}))["deleted"]:
                    return scope
        raise exits.Stop(
            f"there is no key {key[:60]!r} in scope {' or '.join(scopes)}", exits.FAILED
        )

    @asynccontextmanager
    async def _storage(self) -> AsyncGenerator[Any]:
        async with self._opened(_STORES) as grant:
            token = grant.storage_token
            if token is None:
                raise exits.Stop("storage is off", exits.REFUSED)

            async def call(method: str, params: dict[str, Any]) -> Any:
                answer = await self._nexus.storage(token.value, method, codec.encode(params))
                return codec.decode_any(answer)

            yield call

    @asynccontextmanager
    async def _opened(
        self, capabilities: Sequence[str], credentials: Sequence[str] = ()
    ) -> AsyncGenerator[InvokeGrant]:
        opening = InvokeOpening(
            user_id=LOCAL_USER,
            executa_tool_id=self._spec.tool_id,
            plugin=self._spec.name,
            tool=_LOOK,
            invoke_id=new_invoke_id(),
            capabilities=tuple(capabilities),
            credentials=tuple(credentials),
        )
        grant = await self._nexus.open_invoke(opening)
        try:
            yield grant
        finally:
            await self._nexus.close_invoke(opening.invoke_id)
