"""Nexus in memory: completions, agent sessions and their runs, values, and files over HTTP.

Owns what the ordinary answers are. Params have been through the protocol's readers. Files are
put and got over HTTP on the loopback interface, from where the plugin runs.
"""

import secrets
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web
from msgspec import UNSET, Raw

from executa_conformance.plugin.speech import completion, frames, said
from executa_protocol.codec import decode_any
from executa_protocol.codes import ErrorObject, wire_error
from executa_protocol.limits import FILE_MAX_BYTES, STORAGE_LIST_DEFAULT

Object = dict[str, Any]


class Blobs:
    """An HTTP server for uploads and downloads, started by the first that needs it."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.base = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> Self:
        """Listen on a port of the system's choice."""
        app = web.Application(client_max_size=FILE_MAX_BYTES)
        app.router.add_put("/{name}", self._put)
        app.router.add_get("/{name}", self._get)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.base = f"http://127.0.0.1:{port}"
        return self

    async def stop(self) -> None:
        """Close every connection."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _put(self, request: web.Request) -> web.Response:
        self.content[request.match_info["name"]] = await request.read()
        return web.Response(status=200)

    async def _get(self, request: web.Request) -> web.Response:
        content = self.content.get(request.match_info["name"])
        return web.Response(status=404) if content is None else web.Response(body=content)


class Memory:
    """What nexus keeps for one session."""

    def __init__(self, blobs: Blobs) -> None:
        self.blobs = blobs
        self.agent_sessions: set[str] = set()
        """Those that were created and not deleted."""
        self._values: dict[tuple[str, str], Object] = {}
        self._files: dict[tuple[str, str], Object] = {}
        self._uploads: dict[tuple[str, str], str] = {}
        self._changes = 0
        self._serving: dict[str, Callable[[Any], Any]] = {
            "sampling/createMessage": lambda it: completion(said(it)),
            "agent/complete": lambda it: completion(said(it)),
            "agent/session.create": self._create,
            "agent/session.run": self._run,
            "agent/session.cancel": lambda it: {"cancelled": False, "run_id": it.run_id},
            "agent/session.history": lambda it: self._known(it, []),
            "agent/session.delete": self._delete,
            "agent/session.list": lambda _: {
                "sessions": [{"app_session_uuid": uuid} for uuid in sorted(self.agent_sessions)]
            },
            "agent/session.refresh": lambda it: self._known(
                it, {"app_session_uuid": it.app_session_uuid, "expires_in": 600}
            ),
            "storage/get": self._get_value,
            "storage/set": self._set_value,
            "storage/delete": lambda it: self._remove(self._values, it, it.key),
            "storage/list": lambda it: _page(self._values, it, "key"),
            "files/upload_begin": self._upload_begin,
            "files/upload_complete": self._upload_complete,
            "files/download_url": self._download_url,
            "files/list": lambda it: _page(self._files, it, "path"),
            "files/delete": lambda it: self._remove(self._files, it, it.path),
        }

    def serve(self, method: str, params: Any) -> Any:
        """The result of a call that has passed the gate, or an `ErrorObject`."""
        return self._serving[method](params)

    # --- Agent sessions ---------------------------------------------------------------------

    def _create(self, params: Any) -> Object:
        uuid = secrets.token_hex(16)
        self.agent_sessions.add(uuid)
        answer: Object = {
            "app_session_uuid": uuid,
            "thread_id": f"thread-{len(self.agent_sessions)}",
            "kind": params.kind,
            "granted_tools": ["*"],
        }
        if params.agent_submode is not UNSET:
            answer["agent_submode"] = params.agent_submode
        return answer

    def _run(self, params: Any) -> Any:
        run_id = secrets.token_hex(16) if params.run_id is UNSET else params.run_id
        made = frames()
        return self._known(params, {"run_id": run_id, "frames": made, "final": made[-1]})

    def _known(self, params: Any, answer: Any) -> Any:
        if params.app_session_uuid in self.agent_sessions:
            return answer
        return wire_error("AGENT_UNKNOWN_SESSION", "the kit knows no such agent session")

    def _delete(self, params: Any) -> Object:
        self.agent_sessions.discard(params.app_session_uuid)
        return {"deleted": True}

    # --- Values and files ---------------------------------------------------------------------

    def _get_value(self, params: Any) -> Object:
        entry = self._values.get((_scope(params), params.key))
        if entry is None:
            return {"value": None, "exists": False, "etag": None}
        return {
            "value": entry["value"],
            "exists": True,
            "etag": entry["etag"],
            "generation": entry["generation"],
        }

    def _set_value(self, params: Any) -> Any:
        value = decode_any(params.value) if isinstance(params.value, Raw) else params.value
        size = len(bytes(params.value))
        failed = _mismatch(self._values.get((_scope(params), params.key)), params)
        if failed is not None:
            return failed
        entry = self._put(self._values, (_scope(params), params.key), size)
        entry["value"] = value
        return {name: entry[name] for name in ("etag", "generation", "size_bytes")}

    def _put(self, store: dict[tuple[str, str], Object], key: tuple[str, str], size: int) -> Object:
        self._changes += 1
        before = store.get(key, {"generation": 0})
        generation = before["generation"] + 1
        entry = {"etag": f"etag-{self._changes}", "generation": generation, "size_bytes": size}
        store[key] = entry
        return entry

    def _remove(self, store: dict[tuple[str, str], Object], params: Any, name: str) -> Any:
        failed = _mismatch(store.get((_scope(params), name)), params)
        if failed is not None:
            return failed
        store.pop((_scope(params), name), None)
        return {"deleted": True}

    def _upload_begin(self, params: Any) -> Object:
        name = secrets.token_hex(16)
        self._uploads[_scope(params), params.path] = name
        return {"put_url": f"{self.blobs.base}/{name}", "headers": {}, "upload_id": name}

    def _upload_complete(self, params: Any) -> Any:
        key = (_scope(params), params.path)
        content = self.blobs.content.get(self._uploads.get(key, ""))
        if content is None:
            return wire_error("STORAGE_PENDING_UPLOAD", "the kit has not got the file's bytes")
        entry = self._put(self._files, key, len(content))
        entry["blob"] = self._uploads.pop(key)
        return {"path": params.path, "etag": entry["etag"], "size_bytes": len(content)}

    def _download_url(self, params: Any) -> Any:
        entry = self._files.get((_scope(params), params.path))
        if entry is None:
            return wire_error("STORAGE_NOT_FOUND", f"{params.path}: there is no such file")
        return {"url": f"{self.blobs.base}/{entry['blob']}", "etag": entry["etag"]}


def _scope(params: Any) -> str:
    return "tool" if params.scope is UNSET else str(params.scope)


def _mismatch(entry: Object | None, params: Any) -> ErrorObject | None:
    wanted = getattr(params, "if_match", UNSET)
    if wanted is UNSET or (entry is not None and entry["etag"] == wanted):
        return None
    return wire_error("STORAGE_PRECONDITION_FAILED", f"the etag is not {wanted}")


def _page(store: dict[tuple[str, str], Object], params: Any, name: str) -> Object:
    prefix = "" if params.prefix is UNSET else params.prefix
    limit = STORAGE_LIST_DEFAULT if params.limit is UNSET else params.limit
    keys = sorted(key for scope, key in store if scope == _scope(params) and key.startswith(prefix))
    rows = [
        {
            name: key,
            "etag": store[_scope(params), key]["etag"],
            "size_bytes": store[_scope(params), key]["size_bytes"],
        }
        for key in keys[:limit]
    ]
    return {"items": rows, "next_cursor": None}
