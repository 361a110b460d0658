"""Tools are registered, and the manifest says what a host must know."""

import functools
from typing import Any

import msgspec
import pytest

from executa_protocol.errors import UsageError
from executa_protocol.manifest_reading import read_manifest
from executa_protocol.readings import STRICT
from executa_sdk import Context, Plugin, SyncContext
from executa_sdk.plugin import Plugin as SamePlugin


def full() -> Plugin:
    plugin = Plugin(
        "notes",
        "1.2.3",
        description="Keeps notes.",
        credentials=["API_KEY", {"name": "REGION", "required": False, "default": "eu"}],
        display_name="Notes",
        author="Ada",
    )

    @plugin.tool
    def plain(text: str) -> str:
        """Keep a text.

        Args:
            text: What to keep.
        """
        return text

    @plugin.tool(
        name="find-notes",
        description="Find them.",
        timeout=90,
        streaming=True,
        effect="read",
        approval=True,
    )
    async def find(query: str, ctx: Context, limit: int = 5) -> list[str]:
        return (await ctx.storage.tool.get(query, []))[:limit]

    @plugin.tool(inline=True, effect="idempotent")
    def touch() -> None: ...

    return plugin


def test_the_manifest_is_what_strict_hosts_read() -> None:
    manifest = read_manifest(msgspec.json.encode(full().manifest()), reader=STRICT)

    assert (manifest.name, manifest.version, manifest.description) == (
        "notes",
        "1.2.3",
        "Keeps notes.",
    )
    assert manifest.display_name == "Notes"
    assert manifest.author == "Ada"
    assert manifest.host_capabilities == ["aps.kv"]
    assert [tool.name for tool in manifest.tools] == ["plain", "find-notes", "touch"]
    assert [credential.name for credential in manifest.credentials] == ["API_KEY", "REGION"]
    assert [credential.required for credential in manifest.credentials] == [True, False]


def test_each_tool_says_how_it_is_to_be_called() -> None:
    plain, find, touch = read_manifest(msgspec.json.encode(full().manifest())).tools

    assert plain.description == "Keep a text."
    assert plain.parameters[0].description == "What to keep."
    assert (plain.timeout, plain.streaming, plain.effect, plain.approval) == (
        msgspec.UNSET,
        False,
        "mutating",
        False,
    )
    assert (find.timeout, find.streaming, find.effect, find.approval) == (90, True, "read", True)
    assert find.description == "Find them."
    assert [(p.name, p.required) for p in find.parameters] == [("query", True), ("limit", False)]
    assert touch.effect == "idempotent"
    assert touch.description == "Touch"


def test_the_decorator_gives_the_function_back() -> None:
    plugin = Plugin("a")

    @plugin.tool
    def bare(a: int) -> int:
        return a

    @plugin.tool(name="other")
    def named(a: int) -> int:
        return a

    assert bare(1) == named(1) == 1
    assert list(plugin.tools) == ["bare", "other"]


def test_methods_and_callables_are_tools() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total = 0

        def add(self, amount: int) -> int:
            """Add."""
            self.total += amount
            return self.total

        async def reset(self) -> None:
            self.total = 0

        def __call__(self, amount: int) -> int:
            return self.add(amount)

    counter, plugin = Counter(), Plugin("a")
    plugin.tool(counter.add)
    plugin.tool(counter.reset)
    plugin.tool(name="call")(counter)

    assert [tool.way for tool in plugin.tools.values()] == ["thread", "task", "thread"]
    assert [entry["name"] for entry in plugin.tools["call"].schema.parameters] == ["amount"]


def test_a_tool_runs_as_its_function_asks() -> None:
    plugin = Plugin("a")

    @plugin.tool
    def thread() -> None: ...
    @plugin.tool
    async def task() -> None: ...
    @plugin.tool(inline=True)
    def inline() -> None: ...

    plugin.tool(name="partial")(functools.partial(task))

    assert [tool.way for tool in plugin.tools.values()] == ["thread", "task", "inline", "task"]
    assert (thread, inline) is not None


def test_two_tools_of_one_name_are_refused() -> None:
    plugin = full()
    with pytest.raises(UsageError, match="'plain' already"):

        @plugin.tool(name="plain")
        def other() -> None: ...


@pytest.mark.parametrize("name", ["", "two words", "a.b", "9lives"])
def test_a_tool_name_that_no_host_could_call_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="name"):
        Plugin("a").tool(name=name)(lambda: None)


@pytest.mark.parametrize("timeout", [0, -1, 86_401])
def test_a_timeout_out_of_bounds_is_refused(timeout: float) -> None:
    with pytest.raises(UsageError, match="timeout"):
        Plugin("a").tool(name="t", timeout=timeout)(lambda: None)


def test_an_unknown_effect_is_refused() -> None:
    wrong: Any = "harmless"
    with pytest.raises(UsageError, match="read, idempotent, mutating"):
        Plugin("a").tool(name="t", effect=wrong)(lambda: None)


def test_generators_are_refused_with_advice() -> None:
    async def chunks() -> Any:
        yield 1

    def more() -> Any:
        yield 1

    for tool in (chunks, more):
        with pytest.raises(UsageError, match="progress"):
            Plugin("a").tool(tool)


def test_an_inline_coroutine_is_refused() -> None:
    async def tool() -> None: ...

    with pytest.raises(UsageError, match="inline"):
        Plugin("a").tool(inline=True)(tool)


@pytest.mark.parametrize(
    ("string", "hint"), [("storage.user", "aps.kv"), ("aps", "aps.files"), ("nonsense", "nonsense")]
)
def test_a_capability_that_no_host_publishes_is_refused_with_a_hint(string: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        Plugin("a", host_capabilities=[string])


@pytest.mark.parametrize("name", ["api_key", "API-KEY", "", "Api"])
def test_a_credential_name_that_is_not_upper_snake_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="UPPER_SNAKE"):
        Plugin("a", credentials=[name])


def test_a_plugin_needs_tools() -> None:
    with pytest.raises(UsageError, match="no tools"):
        Plugin("a").manifest()


def test_a_plugin_needs_a_name() -> None:
    with pytest.raises(UsageError, match="name"):
        Plugin("")


def test_two_contexts_in_one_tool_are_refused() -> None:
    plugin = Plugin("a")

    @plugin.tool
    def tool(a: SyncContext, b: SyncContext) -> None: ...

    with pytest.raises(UsageError, match="already"):
        plugin.manifest()
    assert tool is not None


def test_names_of_the_package_are_the_ones_of_its_modules() -> None:
    assert Plugin is SamePlugin
