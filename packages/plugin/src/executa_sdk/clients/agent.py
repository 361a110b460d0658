"""`AgentSessionClient`: agent sessions and single completions (seed agent-sessions).

A run is buffered: the host answers once, with all frames, and `AgentRun` gives them one
by one, so that code written for it need not change when hosts stream.
"""

import os
from collections.abc import AsyncIterator
from typing import Any, Final, Self, cast, overload

from executa_protocol.codes import INTERNAL_ERROR, SAMPLING_NOT_NEGOTIATED, SAMPLING_TIMEOUT
from executa_protocol.errors import AgentError, ExecutaError
from executa_protocol.limits import (
    AGENT_CREATE_TIMEOUT,
    AGENT_OTHER_TIMEOUT,
    AGENT_RUN_TIMEOUT,
    AGENT_TTL_DEFAULT,
)
from executa_protocol.limits import SAMPLING_TIMEOUT as COMPLETE_TIMEOUT
from executa_sdk.clients.base import Client, Object
from executa_sdk.clients.sampling import DEFAULT_MAX_TOKENS, text_of, user_message

END_TIMEOUT: Final = 5.0
"""Seconds that a tool on its way out waits for its agent session to be deleted."""


class AgentSessionClient(Client):
    """Creates agent sessions and makes single completions. Failures are `AgentError`."""

    error = AgentError
    disabled_code = SAMPLING_NOT_NEGOTIATED
    timeout_code = SAMPLING_TIMEOUT

    async def create(
        self,
        *,
        kind: str = "agent",
        agent_submode: str | None = "auto",
        fixed_client_id: str | None = None,
        label: str | None = None,
        quota_caps: Object | None = None,
        system_prompt: str | None = None,
        ttl_seconds: int | None = None,
        timeout: float = AGENT_CREATE_TIMEOUT,
    ) -> "AgentSession":
        """Create an agent session.

        `kind` ``agent`` lets the model pick among the granted tools, ``fixed`` binds it to
        the one that `fixed_client_id` names as ``PLUGIN.TOOL``. `label` is for traces.
        """
        params: Object = {
            "kind": kind,
            "agent_submode": agent_submode if kind == "agent" else None,
            "fixed_client_id": fixed_client_id,
            "label": label,
            "quota_caps": quota_caps,
            "system_prompt": system_prompt,
            "ttl_seconds": ttl_seconds,
        }
        result = await self._call_object("agent/session.create", params, timeout)
        if not isinstance(result.get("app_session_uuid"), str):
            raise AgentError(INTERNAL_ERROR, "the host created an agent session without a uuid")
        return AgentSession(self, kind, ttl_seconds or AGENT_TTL_DEFAULT, result)

    @overload
    async def complete(
        self,
        *,
        prompt: str,
        max_tokens: int | None = None,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        model_preferences: Object | None = None,
        metadata: Object | None = None,
        timeout: float = COMPLETE_TIMEOUT,
    ) -> str: ...

    @overload
    async def complete(
        self,
        *,
        messages: list[Object],
        max_tokens: int | None = None,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        model_preferences: Object | None = None,
        metadata: Object | None = None,
        timeout: float = COMPLETE_TIMEOUT,
    ) -> Object: ...

    async def complete(
        self,
        *,
        prompt: str | None = None,
        messages: list[Object] | None = None,
        max_tokens: int | None = None,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        model_preferences: Object | None = None,
        metadata: Object | None = None,
        timeout: float = COMPLETE_TIMEOUT,
    ) -> str | Object:
        """One completion without an agent session: text for a `prompt`, else the result (R-37).

        Raises `AgentError`, and ValueError unless exactly one of `prompt` and `messages`
        is given.
        """
        if (prompt is None) == (messages is None):
            msg = "complete takes either prompt or messages"
            raise ValueError(msg)
        params: Object = {
            "messages": messages if prompt is None else [user_message(prompt)],
            "maxTokens": DEFAULT_MAX_TOKENS if max_tokens is None else max_tokens,
            "systemPrompt": system_prompt,
            "temperature": temperature,
            "stopSequences": stop_sequences or None,
            "modelPreferences": model_preferences or None,
            "metadata": metadata or None,
        }
        result = await self._call_object("agent/complete", params, timeout)
        return result if prompt is None else text_of(result)

    async def list(
        self,
        *,
        include_expired: bool = False,
        limit: int = 50,
        timeout: float = AGENT_OTHER_TIMEOUT,
    ) -> list[Object]:
        """The agent sessions that the host still holds for this plugin (R-33)."""
        params: Object = {"include_expired": include_expired, "limit": limit}
        result = await self._call_object("agent/session.list", params, timeout)
        return list(result.get("sessions") or ())

    async def refresh(
        self,
        app_session_uuid: str,
        *,
        ttl_seconds: int = AGENT_TTL_DEFAULT,
        timeout: float = AGENT_OTHER_TIMEOUT,
    ) -> Object:
        """Prolong an agent session; gives its new expiry (R-33)."""
        params: Object = {"app_session_uuid": app_session_uuid, "ttl_seconds": ttl_seconds}
        return await self._call_object("agent/session.refresh", params, timeout)

    async def call(self, method: str, params: Object, timeout: float = AGENT_OTHER_TIMEOUT) -> Any:
        """Any call of the chapter, by its wire name. Raises `AgentError`."""
        return await self._call(method, params, timeout)


class AgentSession:
    """An agent session that the host holds for us, known by its uuid.

    It ends with the plugin's process or by `delete`; never keep the uuid beyond that.
    `granted_tools` are ``PLUGIN.TOOL`` names, ``*`` for all of the user's; without any,
    the session only talks.
    """

    def __init__(self, client: AgentSessionClient, kind: str, ttl: int, result: Object) -> None:
        self._client = client
        granted: Any = result.get("granted_tools")
        self.uuid: str = result["app_session_uuid"]
        self.thread_id: str | None = result.get("thread_id")
        self.kind: str = result.get("kind") or kind
        self.agent_submode: str | None = result.get("agent_submode")
        self.fixed_client_id: str | None = result.get("fixed_client_id")
        self.granted_tools: list[str] = list(granted or ())
        self.inherit_host_tools = bool(result.get("inherit_host_tools", "*" in self.granted_tools))
        self.system_prompt: str | None = result.get("system_prompt")
        self.expires_in = int(result.get("expires_in") or ttl)
        self.run_id: str | None = None
        """The run that was started last."""

    def __repr__(self) -> str:
        return f"AgentSession(uuid={self.uuid!r}, kind={self.kind!r})"

    def run(
        self,
        content: str,
        *,
        attachments: list[Object] | None = None,
        recursion_limit: int | None = None,
        run_id: str | None = None,
        allowed_tools: list[str] | None = None,
        system_prompt: str | None = None,
        max_tokens: int | None = None,
        model_preferences: Object | None = None,
        timeout: float = AGENT_RUN_TIMEOUT,
    ) -> "AgentRun":
        """Send a message; iterate the result for its frames (seed agent-sessions, Frame shapes).

        `run_id` is ours to choose, for `cancel`. `allowed_tools` narrows the granted ones.
        """
        self.run_id = run_id or os.urandom(16).hex()
        params: Object = {
            "app_session_uuid": self.uuid,
            "content": content,
            "run_id": self.run_id,
            "attachments": attachments,
            "recursion_limit": recursion_limit,
            "allowed_tools": allowed_tools,
            "systemPrompt": system_prompt,
            "maxTokens": max_tokens,
            "modelPreferences": model_preferences,
        }
        return AgentRun(self._client, params, timeout)

    async def cancel(self, run_id: str | None = None) -> Object:
        """End a run, the last one by default; ``{"cancelled": false}`` if it had ended (R-32)."""
        if run_id is None and self.run_id is None:
            return {"cancelled": False}
        params: Object = {"app_session_uuid": self.uuid, "run_id": run_id or self.run_id}
        return await self._client.call("agent/session.cancel", params)

    async def history(self) -> Any:
        """What was said so far: an empty list until v2.2 (R-33)."""
        return await self._client.call("agent/session.history", {"app_session_uuid": self.uuid})

    async def refresh(self, *, ttl_seconds: int = AGENT_TTL_DEFAULT) -> Object:
        """Prolong this agent session and note how long it lives now."""
        result = await self._client.refresh(self.uuid, ttl_seconds=ttl_seconds)
        expires_in = result.get("expires_in")
        if isinstance(expires_in, int | float):
            self.expires_in = int(expires_in)
        return result

    async def delete(self) -> Object:
        """End this agent session and its runs. Idempotent (R-30)."""
        return await self._client.call("agent/session.delete", {"app_session_uuid": self.uuid})

    async def end(self) -> None:
        """Delete this agent session; that it is gone already, or the host with it, is no news."""
        params: Object = {"app_session_uuid": self.uuid}
        try:
            await self._client.call("agent/session.delete", params, END_TIMEOUT)
        except ExecutaError:
            return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *fault: object) -> None:
        await self.end()


class AgentRun:
    """One run: ``async for frame in run`` gives its frames, `text` all that was said."""

    def __init__(self, client: AgentSessionClient, params: Object, timeout: float) -> None:
        self._client = client
        self._params = params
        self._timeout = timeout
        self._frames: list[Object] | None = None

    @property
    def run_id(self) -> str:
        """The run's id, for `AgentSession.cancel`."""
        return self._params["run_id"]

    async def frames(self) -> list[Object]:
        """All frames, once the run has ended. Raises `AgentError`."""
        if self._frames is None:
            result = await self._client.call("agent/session.run", self._params, self._timeout)
            # The seed's answer is the bare array; the field's holds it.
            listed = cast("Object", result).get("frames") if isinstance(result, dict) else result
            items = cast("list[Any]", listed) if isinstance(listed, list) else []
            self._frames = [frame for frame in items if isinstance(frame, dict)]
        return self._frames

    async def text(self) -> str:
        """The text of the final frame, else of the deltas. Raises `AgentError`."""
        frames = await self.frames()
        if frames and frames[-1].get("event") == "final" and frames[-1].get("text"):
            return str(frames[-1]["text"])
        return "".join(str(f.get("text") or "") for f in frames if f.get("event") == "delta")

    async def __aiter__(self) -> AsyncIterator[Object]:
        for frame in await self.frames():
            yield frame
