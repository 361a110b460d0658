"""`SyncContext`: the context of plain functions, whose calls to the host block their thread.

Each method is the one of `Context`, driven to its end (see `bridge`).
"""

from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from executa_protocol.limits import AGENT_RUN_TIMEOUT, SAMPLING_TIMEOUT
from executa_sdk.bridge import Bridge, run_blocking
from executa_sdk.call_info import CallInfo
from executa_sdk.context import Context, current_context
from executa_sdk.invocation import Invocation
from executa_sdk.reverse import Reverse

if TYPE_CHECKING:
    from executa_sdk.clients.agent import AgentSession
    from executa_sdk.clients.sampling import Completion
    from executa_sdk.sync_stores import SyncFiles, SyncStorage

Object = dict[str, Any]
T = TypeVar("T")


class SyncContext(CallInfo):
    """One call, as a plain function sees it. Any thread but the event loop's may use it."""

    def __init__(self, invocation: Invocation, bridge: Bridge) -> None:
        super().__init__(invocation)
        self._context = Context(invocation, Reverse(invocation, bridge))

    @classmethod
    def current(cls) -> "SyncContext":
        """The blocking context of the call that runs here. Raises `UsageError` outside of one."""
        context: Any = current_context()
        return context if isinstance(context, cls) else context.blocking()

    def sample(
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
        """See `Context.sample`."""
        return run_blocking(
            self._context.sample(
                prompt,
                max_tokens=max_tokens,
                system_prompt=system_prompt,
                temperature=temperature,
                stop_sequences=stop_sequences,
                model_preferences=model_preferences,
                response_format=response_format,
                on_unsupported=on_unsupported,
                timeout=timeout,
            )
        )

    def complete(
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
        """See `Context.complete`."""
        return run_blocking(
            self._context.complete(
                prompt,
                max_tokens=max_tokens,
                system_prompt=system_prompt,
                temperature=temperature,
                stop_sequences=stop_sequences,
                model_preferences=model_preferences,
                timeout=timeout,
            )
        )

    @contextmanager
    def agent(
        self,
        *,
        label: str | None = None,
        fixed_client_id: str | None = None,
        system_prompt: str | None = None,
        ttl_seconds: int | None = None,
        quota_caps: Object | None = None,
    ) -> "Generator[SyncAgentSession]":
        """See `Context.agent`; for a ``with`` block."""
        session = run_blocking(
            self._context.agents.create(
                kind="fixed" if fixed_client_id else "agent",
                fixed_client_id=fixed_client_id,
                label=label,
                system_prompt=system_prompt,
                ttl_seconds=ttl_seconds,
                quota_caps=quota_caps,
            )
        )
        try:
            yield SyncAgentSession(session)
        finally:
            run_blocking(session.end())

    @property
    def storage(self) -> "SyncStorage":
        """See `Context.storage`."""
        from executa_sdk.sync_stores import SyncStorage  # noqa: PLC0415 - if used

        return SyncStorage(self._context.storage)

    @property
    def files(self) -> "SyncFiles":
        """See `Context.files`."""
        from executa_sdk.sync_stores import SyncFiles  # noqa: PLC0415 - if used

        return SyncFiles(self._context.files)

    def wait(self, fn: "Callable[[Context], Coroutine[Any, Any, T]]") -> T:
        """What any call of `Context` gives: ``ctx.wait(lambda c: c.agents.list())``."""
        return run_blocking(fn(self._context))


class SyncAgentSession:
    """An agent session whose calls block. `session` is the one beneath it."""

    __slots__ = ("session",)

    def __init__(self, session: "AgentSession") -> None:
        self.session = session

    @property
    def uuid(self) -> str:
        """The agent session's id."""
        return self.session.uuid

    @property
    def granted_tools(self) -> list[str]:
        """The tools that runs may call, as ``PLUGIN.TOOL``."""
        return self.session.granted_tools

    def run(
        self,
        content: str,
        *,
        attachments: list[Object] | None = None,
        recursion_limit: int | None = None,
        allowed_tools: list[str] | None = None,
        system_prompt: str | None = None,
        max_tokens: int | None = None,
        timeout: float = AGENT_RUN_TIMEOUT,
    ) -> "SyncAgentRun":
        """See `AgentSession.run`; iterate the result for its frames."""
        run = self.session.run(
            content,
            attachments=attachments,
            recursion_limit=recursion_limit,
            allowed_tools=allowed_tools,
            system_prompt=system_prompt,
            max_tokens=max_tokens,
            timeout=timeout,
        )
        return SyncAgentRun(
            run.run_id, lambda: run_blocking(run.frames()), lambda: run_blocking(run.text())
        )

    def cancel(self, run_id: str | None = None) -> Object:
        """See `AgentSession.cancel`; from another thread than the one that runs."""
        return run_blocking(self.session.cancel(run_id))


class SyncAgentRun:
    """One run: iterate it for its frames; `text` is all that was said."""

    __slots__ = ("_frames", "_text", "run_id")

    def __init__(
        self, run_id: str, frames: Callable[[], list[Object]], text: Callable[[], str]
    ) -> None:
        self.run_id = run_id
        self._frames = frames
        self._text = text

    def text(self) -> str:
        """The text of the final frame, else of the deltas. Raises `AgentError`."""
        return self._text()

    def __iter__(self) -> Iterator[Object]:
        return iter(self._frames())
