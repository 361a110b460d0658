"""Host capabilities are found in what the tools' code asks of its context."""

import functools
from collections.abc import Callable
from typing import Any

import executa_sdk
from executa_sdk import Context, Plugin, SyncContext, current_context
from executa_sdk.uses import capabilities


async def samples(ctx: Context) -> str:
    return (await ctx.sample("a")).text


def samples_in_a_thread(ctx: SyncContext) -> str:
    return ctx.sample("a").text


async def whole_result(ctx: Context) -> Any:
    return await ctx.sampling.create_message(messages=[], max_tokens=1)


async def completes(ctx: Context) -> str:
    return await ctx.complete("a")


async def talks(context: Context) -> None:
    async with context.agent() as session:
        await session.run("a").text()


async def lists_sessions(ctx: Context) -> Any:
    return await ctx.agents.list()


async def stores(where: Context) -> Any:
    storage = where.storage
    return await storage.user.get("a")


async def saves(ctx: Context) -> Any:
    return await ctx.files.save("a", b"")


def nothing(a: int) -> int:
    return a


async def asks_little(ctx: Context) -> str:
    await ctx.progress(1)
    return ctx.invoke_id


def test_each_use_needs_its_strings() -> None:
    found = {
        fn.__name__: capabilities([fn])
        for fn in (
            samples,
            samples_in_a_thread,
            whole_result,
            completes,
            talks,
            lists_sessions,
            stores,
            saves,
            nothing,
            asks_little,
        )
    }

    assert found == {
        "samples": ["llm.sample"],
        "samples_in_a_thread": ["llm.sample"],
        "whole_result": ["llm.sample"],
        "completes": ["llm.sample"],
        "talks": ["llm.sample", "llm.agent.auto"],
        "lists_sessions": ["llm.sample", "llm.agent.auto"],
        "stores": ["aps.kv"],
        "saves": ["aps.files"],
        "nothing": [],
        "asks_little": [],
    }


def test_the_strings_of_several_tools_come_once_and_in_order() -> None:
    assert capabilities([saves, stores, samples, talks]) == [
        "llm.sample",
        "llm.agent.auto",
        "aps.kv",
        "aps.files",
    ]


# --- Through helpers. ---------------------------------------------------------------------------


async def helper(ctx: Context, text: str) -> str:
    return (await ctx.sample(text)).text


async def uses_a_helper(ctx: Context) -> str:
    return await helper(ctx, "a")


async def nests(ctx: Context) -> Any:
    async def inner() -> Any:
        return await ctx.storage.tool.get("a")

    return [await item for item in (inner(),)]


def finds_its_context() -> Any:
    return current_context().storage


def finds_it_by_module() -> Any:
    return executa_sdk.current_context().files


class Notes:
    def keep(self, text: str, ctx: SyncContext) -> None:
        self._write(ctx, text)

    def _write(self, ctx: SyncContext, text: str) -> None:
        ctx.storage.tool.set("a", text)


class Callable_:  # noqa: N801 - named for what it is
    async def __call__(self, ctx: Context) -> Any:
        return await ctx.files.url("a")


def wrapped(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    async def outer(*args: Any, **kwargs: Any) -> Any:
        return await fn(*args, **kwargs)

    return outer


def waits(ctx: SyncContext) -> Any:
    return ctx.wait(lambda c: c.agents.list())


def test_what_a_plain_function_waits_for_counts() -> None:
    assert capabilities([waits]) == ["llm.sample", "llm.agent.auto"]


def test_functions_of_the_same_module_are_followed() -> None:
    assert capabilities([uses_a_helper]) == ["llm.sample"]


def test_functions_inside_are_followed() -> None:
    assert capabilities([nests]) == ["aps.kv"]


def test_a_context_that_is_looked_up_counts() -> None:
    assert capabilities([finds_its_context]) == ["aps.kv"]
    assert capabilities([finds_it_by_module]) == ["aps.files"]


def test_methods_of_the_same_object_are_followed() -> None:
    assert capabilities([Notes().keep]) == ["aps.kv"]


def test_callables_and_wrapped_functions_are_looked_into() -> None:
    assert capabilities([Callable_()]) == ["aps.files"]
    assert capabilities([wrapped(stores)]) == ["aps.kv"]


# --- What looks like it and is not. -------------------------------------------------------------


class Random:
    def sample(self, many: int) -> int:
        return many

    storage = None


RANDOM = Random()


async def samples_something_else(ctx: Context, many: int) -> int:
    await ctx.progress(1)
    return RANDOM.sample(many) if RANDOM.storage is None else 0


def test_the_same_names_on_other_objects_do_not_count() -> None:
    assert capabilities([samples_something_else]) == []


# --- In the manifest. ---------------------------------------------------------------------------


def test_the_manifest_has_what_was_derived_unless_it_is_stated() -> None:
    derived = Plugin("a")
    derived.tool(stores)
    stated = Plugin("a", host_capabilities=["llm.sample"])
    stated.tool(stores)

    assert derived.manifest()["host_capabilities"] == ["aps.kv"]
    assert stated.manifest()["host_capabilities"] == ["llm.sample"]
    assert stated.derived_capabilities() == ["aps.kv"]
