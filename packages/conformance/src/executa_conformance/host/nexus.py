"""A nexus that says what a check wants it to say, and keeps what it was asked.

Serves the HTTP interface that a host speaks (docs/spec/field.md, Nexus over HTTP), for many
plugins at once: each has a `Book`, found by its executa tool id when an invoke is opened, and by
the tokens that were given afterwards.
"""

import asyncio
import time
from typing import Any, Final, Self, cast

import msgspec
from aiohttp import web
from msgspec import Struct

from executa_conformance.host.book import FINAL, Book, Reply, Seen, completion, frames_of, refusal

KEY: Final = "kit-key"
"""What the host shows to open invokes."""


class _Bearer(Struct):
    book: Book
    invoke_id: str
    session: str = ""


class ScriptedNexus:
    """The server, on a port of loopback."""

    def __init__(self) -> None:
        self.url = ""
        self._books: dict[str, Book] = {}
        self._bearers: dict[str, _Bearer] = {}
        self._invokes: dict[str, tuple[Book, Any]] = {}
        self._number = 0
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 25)
        app.router.add_route("*", "/api/v1/{path:.*}", self._serve)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = cast("tuple[str, int]", self._runner.addresses[0])[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def book(self, tool_id: str) -> Book:
        """The book of a plugin, opened with the first call."""
        return self._books.setdefault(tool_id, Book(tool_id))

    # --- Requests --------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            body = msgspec.json.decode(raw) if raw else None
        except msgspec.DecodeError:
            body = None
        path = request.match_info["path"]
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        name = _name(request.method, path)
        book, seen = self._whose(name, path, bearer, body)
        if book is None:
            return _json(refusal(401, -32600, "INVALID_REQUEST", "nobody's token or id"))
        book.add(seen)
        try:
            answer = book.answers.get(name)
            reply = self._default(book, seen) if answer is None else answer(seen)
            if asyncio.iscoroutine(reply):
                reply = await reply
            reply = cast("Reply", reply)
            if reply.frames is None:
                return _json(reply)
            return await _stream(request, reply)
        finally:
            seen.closed.set()

    def _whose(self, name: str, path: str, bearer: str, body: Any) -> tuple[Book | None, Seen]:
        seen = Seen(name, bearer, body, path)
        if name == "open":
            seen.invoke_id = str(body.get("invoke_id", ""))
            book = self._books.get(str(body.get("executa_tool_id", "")))
            if book is not None:
                self._invokes[seen.invoke_id] = book, body
            return book, seen
        if name in ("renew", "close"):
            seen.invoke_id = path.split("/")[2]
            return self._invokes.get(seen.invoke_id, (None, None))[0], seen
        known = self._bearers.get(bearer)
        if known is None:
            return None, seen
        seen.invoke_id, seen.session = known.invoke_id, known.session
        return known.book, seen

    # --- What is said unless a check says otherwise --------------------------------------------

    def _default(self, book: Book, seen: Seen) -> Reply:
        match seen.name:
            case "open" | "renew":
                return Reply(self.grant(book, seen.invoke_id))
            case "create":
                return Reply(self.session(book, seen))
            case "refresh":
                return Reply(self.session(book, seen, seen.path.split("/")[3]))
            case "sample":
                return Reply(completion())
            case "run":
                return Reply(frames=frames_of({"event": "delta", "text": "hello"}, FINAL))
            case "cancel":
                return Reply({"cancelled": True})
            case "close" | "delete" | "tool_result":
                return Reply(status=204)
            case _:
                return Reply(_STORED.get(seen.name, {}))

    def grant(self, book: Book, invoke_id: str) -> dict[str, Any]:
        """What an invoke is given: tokens as its declared capabilities unlock them (R-39)."""
        opening = self._invokes[invoke_id][1]
        declared = [str(word) for word in opening.get("capabilities", ())]
        given: dict[str, Any] = {
            "grants": book.grants,
            "caps": book.caps,
            "granted_tools": book.granted_tools,
            "credentials": book.credentials,
        }
        wanted = {
            "sampling_token": any(word.startswith("llm.") for word in declared),
            "storage_token": any(word.startswith("aps") for word in declared),
        }
        scopes = [*book.scopes, *(["app"] if opening.get("app") else [])]
        for kind, unlocked in wanted.items():
            if unlocked and kind not in book.withheld:
                value = self.mint(book, invoke_id, kind)
                token: dict[str, Any] = {"value": value, "expires_at": time.time() + book.life}
                given[kind] = {**token, "scopes": scopes} if kind == "storage_token" else token
        return given

    def session(self, book: Book, seen: Seen, uuid: str = "") -> dict[str, Any]:
        """A minted agent session."""
        self._number += 1
        uuid = uuid or f"kit-session-{self._number}"
        asked: dict[str, Any] = seen.body or {}
        kind = str(asked.get("kind", "agent"))
        mode = {"agent_submode": "auto"} if kind == "agent" else {}
        if kind == "fixed":
            mode["fixed_client_id"] = str(asked.get("fixed_client_id", ""))
        return {
            "app_session_uuid": uuid,
            "token": self.mint(book, seen.invoke_id, "session_token", uuid),
            "thread_id": f"thread-{uuid}",
            "expires_at": time.time() + book.session_life,
            "kind": kind,
            "granted_tools": book.granted_tools,
            **mode,
        }

    def mint(self, book: Book, invoke_id: str, kind: str, session: str = "") -> str:
        """A token, which says nothing to whoever reads it."""
        self._number += 1
        value = f"kit-{kind.replace('_', '-')}-{self._number}-{invoke_id[:8]}"
        self._bearers[value] = _Bearer(book, invoke_id, session)
        book.minted.append(value)
        return value


_STORED: Final[dict[str, dict[str, Any]]] = {
    "storage/get": {"value": {"kept": True}, "exists": True, "etag": "e1", "generation": 1},
    "storage/set": {"etag": "e1", "generation": 1, "size_bytes": 13},
    "storage/delete": {"deleted": True},
    "storage/list": {"items": [], "next_cursor": None},
    "files/upload_begin": {
        "upload_id": "u1",
        "put_url": "http://127.0.0.1:9/put",
        "headers": {"Content-Type": "text/plain"},
        "expires_at": 4_000_000_000,
    },
    "files/upload_complete": {"path": "a.txt", "etag": "e1", "size_bytes": 5},
    "files/download_url": {"url": "http://127.0.0.1:9/get", "expires_at": 4_000_000_000},
    "files/list": {"items": [], "next_cursor": None},
    "files/delete": {"deleted": True},
}

_FIXED: Final = {
    ("POST", "executa/invokes"): "open",
    ("POST", "copilot/sampling"): "sample",
    ("POST", "copilot/app/sessions/from_sampling"): "create",
    ("POST", "copilot/app/agent"): "run",
    ("POST", "copilot/app/agent/cancel"): "cancel",
    ("POST", "copilot/app/agent/tool_result"): "tool_result",
}


def _name(method: str, path: str) -> str:
    """What a request asks for."""
    if (fixed := _FIXED.get((method, path))) is not None:
        return fixed
    if path.startswith("executa/invokes/"):
        return "close" if method == "DELETE" else "renew"
    if path.startswith("copilot/app/sessions/"):
        return "delete" if method == "DELETE" else "refresh"
    if path.startswith("storage/kv/"):
        return f"storage/{path.removeprefix('storage/kv/')}"
    return path.removeprefix("storage/")


def _json(reply: Reply) -> web.Response:
    if reply.body is None:
        return web.Response(status=reply.status)
    body = reply.body if isinstance(reply.body, bytes) else msgspec.json.encode(reply.body)
    return web.Response(body=body, status=reply.status, content_type="application/json")


async def _stream(request: web.Request, reply: Reply) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    async for frame in reply.frames or frames_of():
        data = frame if isinstance(frame, bytes) else msgspec.json.encode(frame)
        await response.write(b"data: " + data + b"\n\n")
    if reply.cut:
        if request.transport is not None:
            request.transport.abort()
        return response
    if reply.marked:
        await response.write(b'data: {"event":"end","done":true}\n\n')
    await response.write_eof()
    return response
