"""What a test host offers plugins: scripted answers behind the same gate as a real host's.

Serves one reverse call at a time, without waiting for anything. Refusals are those of
`executa_protocol.gate`, in its order and with its words (R-22).
"""

import math
from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, json, to_builtins

from executa_protocol import gate
from executa_protocol.codes import by_symbol, wire_error
from executa_protocol.errors import DecodeFailure, RpcError
from executa_protocol.faults import as_object
from executa_protocol.gate import Refusal
from executa_protocol.handshake import FALLBACK, Negotiated
from executa_protocol.methods import METHODS, canonical_name, refusal
from executa_protocol.methods.info import MethodInfo
from executa_protocol.nexus import Caps, Grants, Token
from executa_protocol.readings import TOLERANT
from executa_sdk.testing.blobs import Blobs
from executa_sdk.testing.clock import Clock
from executa_sdk.testing.memory import MemoryStore, missing
from executa_sdk.testing.scripts import (
    RunScript,
    SampleScript,
    frames_of,
    result_of,
    runs,
    samples,
)

Object = dict[str, Any]
_CONTEXT = json.Decoder(dict[str, Any])


class ReverseCall(Struct):
    """A call that the plugin made. `error` is the code it was refused with, 0 if none."""

    method: str
    params: Object
    error: int = 0


class Usage(Struct):
    """What an invoke, and all that is nested under it, has used (R-35)."""

    sampling_calls: int = 0
    tokens: int = 0
    storage_calls: int = 0


class Services:
    """The host's side of reverse calls.

    `sample` and `agent` are scripts (see `scripts`). `grants` are the user's, `scopes` the
    storage token's, `granted_tools` what agent sessions may call.
    """

    def __init__(
        self,
        *,
        sample: SampleScript = "A scripted answer.",
        agent: RunScript = "A scripted answer.",
        grants: Grants | None = None,
        scopes: tuple[str, ...] = ("user", "tool"),
        granted_tools: tuple[str, ...] = ("*",),
        caps: Caps | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.grants = grants or Grants(sampling=True, agent=True, storage=True, files=True)
        self.scopes = scopes
        self.granted_tools = granted_tools
        self.caps = caps or Caps()
        self.clock = clock or Clock()
        self.storage = MemoryStore(self.clock)
        self.files = MemoryStore(self.clock)
        self.blobs = Blobs()
        self.sessions: set[str] = set()
        """The agent sessions that were created and not deleted."""
        self.calls: list[ReverseCall] = []
        """Every reverse call, in order."""
        self.negotiated: Negotiated = FALLBACK
        self.declared: frozenset[str] = frozenset()
        self._samples = samples(sample)
        self._runs = runs(agent)
        self._names = 0
        self._pending: dict[tuple[str, str], str] = {}
        self._serving: dict[str, Callable[[Any, Object], Any]] = {
            "sampling/createMessage": self._sample,
            "agent/complete": self._sample,
            "agent/session.create": self._create,
            "agent/session.run": self._run,
            "agent/session.cancel": lambda params, _: {"cancelled": False, "run_id": params.run_id},
            "agent/session.history": lambda params, _: self._known(params, []),
            "agent/session.delete": self._delete_session,
            "agent/session.list": self._list_sessions,
            "agent/session.refresh": lambda params, _: self._known(params, {"expires_in": 600}),
            "storage/get": lambda params, _: self.storage.get(params.scope, params.key),
            "storage/set": lambda params, _: self.storage.set(params.scope, params),
            "storage/delete": lambda params, _: self.storage.delete(
                params.scope, params.key, params.if_match
            ),
            "storage/list": lambda params, _: self.storage.page(params.scope, params),
            "files/upload_begin": self._upload_begin,
            "files/upload_complete": self._upload_complete,
            "files/download_url": self._download_url,
            "files/list": lambda params, _: self.files.page(params.scope, params, "path"),
            "files/delete": lambda params, _: self.files.delete(
                params.scope, params.path, params.if_match
            ),
        }

    def serve(self, name: str, raw: Raw | UnsetType, active: dict[str, Usage]) -> Any:
        """The result of a reverse call. `active` are the invokes in flight, by id.

        Raises `RpcError` with what the plugin is answered.
        """
        members: Object = {} if raw is UNSET else _CONTEXT.decode(raw)
        call = ReverseCall(name, members)
        self.calls.append(call)
        try:
            return self._serve(canonical_name(name), raw, members, active)
        except RpcError as fault:
            call.error = fault.code
            raise

    def _serve(
        self, name: str, raw: Raw | UnsetType, members: Object, active: dict[str, Usage]
    ) -> Any:
        method = METHODS.get(name)
        if method is None or name not in self._serving:
            symbol = "METHOD_NOT_FOUND" if method is None else "UNMAPPED_METHOD"
            raise _error(symbol, f"the test host does not serve {name}")
        _insist(gate.check_negotiated(method, self.negotiated))
        _insist(gate.check_manifest(method, self.declared))
        usage = _correlate(members, active)
        _insist(gate.check_grant(method, self.grants))
        token = Token("test", math.inf, self.scopes)
        _insist(gate.check_token(method, token, self.clock()))
        try:
            params = method.read(raw, TOLERANT) if method.read is not None else None
        except DecodeFailure as fault:
            error = refusal(fault, method.invalid)
            raise RpcError(error.code, error.message, error.data) from None
        scope = getattr(params, "scope", UNSET)
        _insist(gate.check_scope(method, None if scope is UNSET else scope, token))
        self._spend(method, params, usage)
        result = self._serving[name](params, members)
        usage.tokens += _tokens(result)
        return result

    def _spend(self, method: MethodInfo, params: Any, usage: Usage) -> None:
        """One call of the invoke's budget (R-35)."""
        caps = self.caps
        if method.chapter == "storage":
            usage.storage_calls += 1
            if usage.storage_calls > caps.storage_calls:
                raise _error("STORAGE_RATE_LIMITED", f"more than {caps.storage_calls} calls")
        elif method.name in ("sampling/createMessage", "agent/complete", "agent/session.run"):
            usage.sampling_calls += 1
            if usage.sampling_calls > caps.sampling_calls:
                text = f"more than {caps.sampling_calls} model calls in one invoke"
                raise _error("SAMPLING_MAX_CALLS_EXCEEDED", text)
            wanted = params.max_tokens if isinstance(params.max_tokens, int) else 0
            if wanted > caps.tokens_per_call or usage.tokens + wanted > caps.tokens:
                text = f"{wanted:,} tokens asked, {caps.tokens - usage.tokens:,} left"
                raise _error("SAMPLING_MAX_TOKENS_EXCEEDED", text)

    # --- Sampling and agent sessions --------------------------------------------------------

    def _sample(self, params: Any, members: Object) -> Object:
        return result_of(self._samples.play(members))

    def _create(self, params: Any, members: Object) -> Object:
        self._names += 1
        uuid = f"test-session-{self._names}"
        self.sessions.add(uuid)
        return {
            "app_session_uuid": uuid,
            "thread_id": f"test-thread-{self._names}",
            "kind": params.kind,
            "agent_submode": params.agent_submode or None,
            "granted_tools": list(self.granted_tools),
        }

    def _run(self, params: Any, members: Object) -> Object:
        frames = self._known(params, frames_of(self._runs.play(members)))
        return {"run_id": params.run_id or "test-run", "frames": frames, "final": frames[-1]}

    def _known(self, params: Any, answer: Any) -> Any:
        if params.app_session_uuid not in self.sessions:
            text = f"no agent session {params.app_session_uuid!r}"
            raise _error("AGENT_UNKNOWN_SESSION", text)
        return answer

    def _delete_session(self, params: Any, members: Object) -> Object:
        self.sessions.discard(params.app_session_uuid)
        return {"deleted": True}

    def _list_sessions(self, params: Any, members: Object) -> Object:
        return {"sessions": [{"app_session_uuid": uuid} for uuid in sorted(self.sessions)]}

    # --- Files ----------------------------------------------------------------------------------

    def _upload_begin(self, params: Any, members: Object) -> Object:
        name = self.blobs.new_name()
        self._pending[params.scope, params.path] = name
        return {"put_url": self.blobs.url(name), "headers": {}, "upload_id": name}

    def _upload_complete(self, params: Any, members: Object) -> Object:
        name = self._pending.get((params.scope, params.path), "")
        content = self.blobs.content.get(name)
        if content is None:
            raise _error("STORAGE_PENDING_UPLOAD", f"{params.path}: no bytes have landed")
        del self._pending[params.scope, params.path]
        entry = self.files.put(params.scope, params.path, Raw(json.encode(name)), len(content))
        return {"path": params.path, "etag": entry.etag, "size_bytes": len(content)}

    def _download_url(self, params: Any, members: Object) -> Object:
        entry = self.files.find(params.scope, params.path)
        if entry is None:
            raise missing(params.path)
        return {"url": self.blobs.url(json.decode(entry.value)), "etag": entry.etag}


def _correlate(members: Object, active: dict[str, Usage]) -> Usage:
    """Whose call it is (R-23)."""
    context = as_object(members.get("context")) or {}
    invoke_id = context.get("invoke_id")
    if invoke_id is None:
        if len(active) == 1:
            return next(iter(active.values()))
        text = f"params.context.invoke_id is missing and {len(active)} invokes are active"
        raise _error("MISSING_INVOKE_CONTEXT", text)
    usage = active.get(invoke_id)
    if usage is None:
        raise _error("UNKNOWN_INVOKE_CONTEXT", f"no invoke {invoke_id!r} is active")
    return usage


def _tokens(result: Any) -> int:
    usage = as_object((as_object(result) or {}).get("usage")) or {}
    return int(usage.get("outputTokens") or 0)


def _insist(refused: Refusal | None) -> None:
    if refused is not None:
        error = refused.error
        raise RpcError(error.code, error.message, to_builtins(error.data))


def _error(name: str, text: str) -> RpcError:
    error = wire_error(by_symbol(name), text)
    return RpcError(error.code, error.message, error.data)
