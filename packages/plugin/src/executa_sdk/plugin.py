"""`Plugin`: the tools of one process, its manifest, and the way to run it.

Owns registration. Reading signatures is `schema`'s, serving the wire is `serve`'s
business, which is imported when `run` is called.
"""

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar, overload

from executa_protocol.errors import UsageError
from executa_sdk.tool import Effect, Tool

F = TypeVar("F", bound=Callable[..., Any])
Hook = Callable[[], Awaitable[None] | None]
H = TypeVar("H", bound=Hook)


class Plugin:
    """A plugin: named tools behind one stdio connection.

    `host_capabilities` are the manifest's strings; None derives them from what the tools
    ask of their context (see `uses`). `credentials` are names, or manifest entries with
    ``name``, ``description``, ``required`` and so on. Further keyword arguments, such as
    ``display_name`` or ``author``, go into the manifest as they are. `grace` is how many
    seconds calls in flight may still take after the host has closed our input.
    """

    def __init__(
        self,
        name: str,
        version: str = "0.1.0",
        *,
        description: str = "",
        host_capabilities: Iterable[str] | None = None,
        credentials: Iterable[str | Mapping[str, Any]] = (),
        grace: float = 3.0,
        **manifest: Any,
    ) -> None:
        if not name:
            msg = "a plugin needs a name"
            raise UsageError(msg)
        self.name = name
        self.version = version
        self.description = description
        self.grace = grace
        self.tools: dict[str, Tool] = {}
        self.startup_hooks: list[Hook] = []
        self.shutdown_hooks: list[Hook] = []
        self._stated = None if host_capabilities is None else _allowed(host_capabilities)
        self.credentials = [_credential(item) for item in credentials]
        self._extra = manifest

    # --- Registration ------------------------------------------------------------

    @overload
    def tool(self, fn: F) -> F: ...

    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        streaming: bool = False,
        effect: Effect | None = None,
        approval: bool = False,
        inline: bool = False,
    ) -> Callable[[F], F]: ...

    def tool(self, fn: F | None = None, **options: Any) -> F | Callable[[F], F]:
        """Offer a function, coroutine function or bound method as a tool.

        `name` and `description` default to the function's own, `timeout` is in seconds,
        `effect` says what a call changes (R-45) and `approval` that a person must agree
        first. A plain function runs in a thread; with `inline` it runs on the event loop,
        where it must neither block nor call the host. The function itself is returned.
        Raises `UsageError`.
        """

        def register(fn: F) -> F:
            tool = Tool(fn, **options)
            if tool.name in self.tools:
                msg = f"plugin {self.name!r} has a tool {tool.name!r} already"
                raise UsageError(msg)
            self.tools[tool.name] = tool
            return fn

        return register if fn is None else register(fn)

    def on_startup(self, hook: H) -> H:
        """Run `hook` before the first call. A plain function runs in a thread.

        The handshake does not wait for it; calls do. If it fails, the process ends with 1.
        """
        self.startup_hooks.append(hook)
        return hook

    def on_shutdown(self, hook: H) -> H:
        """Run `hook` after the last call; all of them together may take a second."""
        self.shutdown_hooks.append(hook)
        return hook

    # --- What the host sees --------------------------------------------------------

    @property
    def host_capabilities(self) -> list[str]:
        """As stated, else derived from what the tools ask of their context."""
        return self.derived_capabilities() if self._stated is None else list(self._stated)

    def derived_capabilities(self) -> list[str]:
        """The capability strings that the tools' code asks for (see `uses`)."""
        if "executa_sdk.context" not in sys.modules and "executa_sdk" not in _globals(self.tools):
            return []  # nobody has loaded what a context is made of
        from executa_sdk.uses import capabilities  # noqa: PLC0415 - costs a disassembler

        return capabilities([tool.fn for tool in self.tools.values()])

    def undeclared_capabilities(self) -> list[str]:
        """What the tools' code asks for and the stated capabilities do not have."""
        if self._stated is None:
            return []
        return [string for string in self.derived_capabilities() if string not in self._stated]

    def manifest(self) -> dict[str, Any]:
        """The answer to `describe`.

        Raises `UsageError` without tools, and for a tool that cannot be described.
        """
        if not self.tools:
            msg = f"plugin {self.name!r} has no tools; register some with @plugin.tool"
            raise UsageError(msg)
        manifest: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "tools": [tool.entry() for tool in self.tools.values()],
            "host_capabilities": self.host_capabilities,
        }
        if self.credentials:
            manifest["credentials"] = self.credentials
        return manifest | self._extra

    # --- Running -------------------------------------------------------------------

    def run(self) -> None:
        """Serve the host on stdin and stdout until it closes our input. Call it last.

        Claims descriptors 0 and 1: from here on prints go to stderr. Ends the process with
        another status than 0 only if start-up fails.
        """
        from executa_sdk.serve import run  # noqa: PLC0415 - a test may never serve

        run(self)


def _globals(tools: Mapping[str, Tool]) -> set[str]:
    """The names of modules that the tools' own modules have as globals."""
    found: set[str] = set()
    for tool in tools.values():
        for value in getattr(tool.fn, "__globals__", {}).values():
            if isinstance(value, ModuleType):
                found.add(value.__name__)
    return found


def _allowed(strings: Iterable[str]) -> list[str]:
    """The strings, each one that a manifest may declare (R-29)."""
    from executa_protocol.capabilities import hint, is_allowed  # noqa: PLC0415 - if stated

    stated = list(strings)
    for string in stated:
        if not is_allowed(string):
            advice = hint(string)
            msg = f"host_capabilities: {string!r} is no capability{advice and '; ' + advice}"
            raise UsageError(msg)
    return stated


def _credential(item: str | Mapping[str, Any]) -> dict[str, Any]:
    entry = {"name": item} if isinstance(item, str) else dict(item)
    name = entry.get("name")
    if not isinstance(name, str) or not name.isidentifier() or name != name.upper():
        msg = f"a credential's name is in UPPER_SNAKE case, such as API_KEY; {name!r} is not"
        raise UsageError(msg)
    return entry
