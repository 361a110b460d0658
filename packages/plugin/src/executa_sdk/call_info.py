"""What a context knows without asking the host, the same in tasks and in threads."""

import math
import os
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET, Raw

from executa_protocol.codec import encode
from executa_protocol.errors import UsageError
from executa_protocol.limits import PROGRESS_MAX_BYTES, PROGRESS_PER_SECOND
from executa_sdk.invocation import Invocation

_LONGEST_NOTE: Final = 2000
"""Characters of a progress note, so that the event stays under its 8 KiB."""


class Credentials(Mapping[str, str]):
    """The credentials of one call by name. Their values show in no repr.

    What the host did not send is taken, for names that the plugin declares, from the
    environment and then from the declaration's default.
    """

    __slots__ = ("_declared", "_values")

    def __init__(self, values: Mapping[str, str], declared: list[dict[str, Any]]) -> None:
        self._declared = [item["name"] for item in declared]
        self._values = {
            **{item["name"]: item["default"] for item in declared if item.get("default")},
            **{name: os.environ[name] for name in self._declared if name in os.environ},
            **values,
        }

    def __getitem__(self, name: str) -> str:
        if name not in self._values and name in self._declared:
            msg = f"{name}: the host sent no such credential; has the user entered it?"
            raise KeyError(msg)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Credentials({', '.join(self._values)})"


class Sent:
    """Something that was sent already: it may be awaited, and need not be."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return iter(())  # type: ignore[return-value]


SENT: Final = Sent()


class CallInfo:
    """The base of both contexts."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._credentials: Credentials | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(tool={self.tool!r}, invoke_id={self.invoke_id!r})"

    @property
    def tool(self) -> str:
        """The name of the tool that was called."""
        return self._invocation.tool.name

    @property
    def invoke_id(self) -> str:
        """The host's id of this invoke; empty if it gave none."""
        return self._invocation.invoke_id or ""

    @property
    def credentials(self) -> Credentials:
        """The credentials of this call, by name."""
        if self._credentials is None:
            context = self._invocation.params.context
            sent = {} if context is UNSET or context.credentials is UNSET else context.credentials
            declared = self._invocation.connection.credentials
            self._credentials = Credentials(sent, declared)
        return self._credentials

    @property
    def deadline(self) -> float | None:
        """When the host gives up on this call, in seconds since the epoch; None if unknown."""
        milliseconds = self._invocation.params.deadline()
        return None if milliseconds is None else milliseconds / 1000

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, never below 0; infinity without one."""
        deadline = self.deadline
        if deadline is None:
            return math.inf
        return max(0.0, deadline - self._invocation.connection.now())

    @property
    def cancelled(self) -> bool:
        """Whether the host has asked this call to end (R-45)."""
        return self._invocation.cancelled

    def check(self) -> None:
        """Raise `CallCancelled` if the host has asked this call to end."""
        self._invocation.check()

    def progress(self, done: float, total: float | None = None, note: str = "") -> Sent:
        """Tell the host how far the call is; at once, and dropped rather than waited for.

        At most 50 events a second go out, and always the one with ``done == total``.
        """
        now = time.monotonic()
        if now - self._invocation.progressed < 1 / PROGRESS_PER_SECOND and done != total:
            return SENT
        self._invocation.progressed = now
        data: dict[str, Any] = {"done": done}
        if total is not None:
            data["total"] = total
        if note:
            data["note"] = note[:_LONGEST_NOTE]
        return self._event("progress", data)

    def update(self, data: Mapping[str, Any]) -> Sent:
        """Send a `tool_update` event with data of the tool's own.

        Raises `UsageError` for more than 8 KiB of JSON, which no host takes.
        """
        return self._event("tool_update", data)

    def _event(self, kind: str, data: Mapping[str, Any]) -> Sent:
        if self._invocation.invoke_id is not None and not self._invocation.ended:
            encoded = encode(data)
            if len(encoded) > PROGRESS_MAX_BYTES:
                msg = f"a progress event has {len(encoded):,} bytes, at most {PROGRESS_MAX_BYTES:,}"
                raise UsageError(msg)
            context = {"invoke_id": self._invocation.invoke_id}
            params = {"type": kind, "data": Raw(encoded), "context": context}
            self._invocation.connection.progress(params)
        return SENT
