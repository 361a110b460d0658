"""What a tool may ask of its call: `Context` in coroutines, `SyncContext` in plain functions.

The field's names for the call's context, which `binding` defines, can be found here too.
"""

from collections.abc import Coroutine, Generator
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from executa_protocol.errors import UsageError
from executa_protocol.limits import SAMPLING_TIMEOUT
from executa_sdk.binding import (
    CURRENT,
    InvokeContext,
    attach_invoke_context,
    bind_invoke,
    get_current_invoke_id,
    reset_current_invoke_id,
    set_current_invoke_id,
)
from executa_sdk.call_info import CallInfo
from executa_sdk.invocation import Invocation
from executa_sdk.reverse import Reverse

if TYPE_CHECKING:
    from executa_sdk.clients.agent import AgentSession, AgentSessionClient
    from executa_sdk.clients.sampling import Completion, SamplingClient
    from executa_sdk.file_store import Files
    from executa_sdk.stores import Storage
    from executa_sdk.sync_context import SyncContext

__all__ = [
    "Context",
    "InvokeContext",
    "attach_invoke_context",
    "bind_invoke",
    "current_context",
    "get_current_invoke_id",
    "make_context",
    "reset_current_invoke_id",
    "set_current_invoke_id",
]

Object = dict[str, Any]


class Context(CallInfo):
    """One call, as a coroutine function sees it. Calls to the host are awaited.

    Failures of the host are `SamplingError`, `AgentError` and `StorageError`; a call that
    the host has cancelled raises `CallCancelled`.
    """

    def __init__(self, invocation: Invocation, reverse: Reverse | None = None) -> None:
        super().__init__(invocation)
        self._reverse = reverse or Reverse(invocation, invocation.bridge)

    @classmethod
    def current(cls) -> "Context":
        """The context of the call that runs here. Raises `UsageError` outside of one."""
        return cls(_running())

    def blocking(self) -> "SyncContext":
        """The same call for plain functions that this tool runs in threads."""
        from executa_sdk.sync_context import SyncContext  # noqa: PLC0415 - it builds on this module

        return SyncContext(self._invocation, self._invocation.connection.in_thread())

    # --- Completions -------------------------------------------------------------------

    async def sample(
        self,
        prompt: str | list[Object],
        *,
        max_tokens: int = 1024,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        model_preferences: Object | None = None,
        response_format: Object | None = None,
        on_unsupported: str | None = None,
        timeout: float = SAMPLING_TIMEOUT,
    ) -> "Completion":
        """One completion by the host's model; needs ``llm.sample``.

        `prompt` is the user's words or a list of messages. `sampling` has the host's whole
        result.
        """
        from executa_sdk.clients.sampling import completion, user_message  # noqa: PLC0415

        result = await self.sampling.create_message(
            messages=[user_message(prompt)] if isinstance(prompt, str) else prompt,
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            temperature=temperature,
            stop_sequences=stop_sequences,
            model_preferences=model_preferences,
            response_format=response_format,
            on_unsupported=on_unsupported,
            timeout=timeout,
        )
        return completion(result)

    @property
    def sampling(self) -> "SamplingClient":
        """Sampling with the host's whole result."""
        return _sampling_client()(caller=self._reverse)

    async def complete(
        self,
        prompt: str,
        *,
        max_tokens: int = 1024,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        model_preferences: Object | None = None,
        timeout: float = SAMPLING_TIMEOUT,
    ) -> str:
        """The text of one `agent/complete`; needs ``llm.sample``."""
        return await self.agents.complete(
            prompt=prompt,
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            temperature=temperature,
            stop_sequences=stop_sequences,
            model_preferences=model_preferences,
            timeout=timeout,
        )

    # --- Agent sessions ------------------------------------------------------------------

    def agent(
        self,
        *,
        label: str | None = None,
        fixed_client_id: str | None = None,
        system_prompt: str | None = None,
        ttl_seconds: int | None = None,
        quota_caps: Object | None = None,
    ) -> "Opening":
        """An agent session for an ``async with`` block.

        Needs ``llm.sample`` and ``llm.agent.auto``. The block deletes it at its end;
        ``await ctx.agent()`` leaves that to you. With `fixed_client_id` (``PLUGIN.TOOL``)
        it may call that one tool only.
        """
        return Opening(
            self.agents.create(
                kind="fixed" if fixed_client_id else "agent",
                fixed_client_id=fixed_client_id,
                label=label,
                system_prompt=system_prompt,
                ttl_seconds=ttl_seconds,
                quota_caps=quota_caps,
            )
        )

    @property
    def agents(self) -> "AgentSessionClient":
        """Every call on agent sessions, with the host's own results."""
        from executa_sdk.clients.agent import AgentSessionClient  # noqa: PLC0415 - if used

        return AgentSessionClient(caller=self._reverse)

    # --- Storage ---------------------------------------------------------------------------

    @property
    def storage(self) -> "Storage":
        """Keys and values of ``storage.user``, ``.tool`` and ``.app``; needs ``aps.kv``."""
        from executa_sdk.stores import Storage  # noqa: PLC0415 - if used

        return Storage(self._reverse)

    @property
    def files(self) -> "Files":
        """Stored files; needs ``aps.files``."""
        from executa_sdk.file_store import Files  # noqa: PLC0415 - if used

        return Files(self._reverse)


class Opening:
    """An agent session that is about to be created: enter it, or await it."""

    __slots__ = ("_creating", "_session")

    def __init__(self, creating: "Coroutine[Any, Any, AgentSession]") -> None:
        self._creating = creating
        self._session: AgentSession | None = None

    def __await__(self) -> "Generator[Any, Any, AgentSession]":
        return self._creating.__await__()

    async def __aenter__(self) -> "AgentSession":
        self._session = await self._creating
        return self._session

    async def __aexit__(self, *fault: object) -> None:
        if self._session is not None:
            await self._session.end()


@cache
def _sampling_client() -> "type[SamplingClient]":
    """Looked up once: an import statement costs a call more than what else it does here."""
    from executa_sdk.clients.sampling import SamplingClient  # noqa: PLC0415 - if used

    return SamplingClient


def current_context() -> Context:
    """The context of the call that runs here.

    In a plain function it is the call's `SyncContext`, whose calls block; type checkers
    are told so by ``SyncContext.current()``. Raises `UsageError` outside of a call.
    """
    return make_context(_running())


def make_context(invocation: Invocation) -> Context:
    """The context that a tool gets, of the kind that its way of running needs."""
    if invocation.tool.way == "task":
        return Context(invocation)
    from executa_sdk.sync_context import SyncContext  # noqa: PLC0415 - it builds on this module

    return cast("Context", SyncContext(invocation, invocation.bridge))


def _running() -> Invocation:
    running = CURRENT.get()
    if not isinstance(running, Invocation):
        msg = "no call of a plugin runs here; contexts exist inside tools"
        raise UsageError(msg)
    return running
