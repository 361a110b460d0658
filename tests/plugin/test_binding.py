"""Calls and progress of plugins with a loop of their own carry the invoke that is bound (R-23)."""

import asyncio
import json
from typing import Any

import pytest

from executa_sdk import (
    InvokeContext,
    StorageClient,
    bind_invoke,
    emit_progress,
    get_current_invoke_id,
)
from tests.plugin.echo import Echo, connect

Object = dict[str, Any]


@pytest.mark.parametrize(
    "params",
    [
        {"context": {"invoke_id": "i"}},
        {"invoke_id": "i"},
        {"context": {"invoke_id": "i"}, "invoke_id": "other"},
        "i",
    ],
)
def test_an_invoke_is_bound_for_a_block(params: Any) -> None:
    with bind_invoke(params) as bound:
        assert bound == get_current_invoke_id() == "i"
        with bind_invoke(None):
            assert get_current_invoke_id() is None
        assert get_current_invoke_id() == "i"
    assert get_current_invoke_id() is None


async def test_the_binding_is_of_the_task_alone() -> None:
    async def bound(name: str) -> str | None:
        with bind_invoke(name):
            await asyncio.sleep(0)
            return get_current_invoke_id()

    assert await asyncio.gather(bound("a"), bound("b")) == ["a", "b"]


async def test_a_context_of_ones_own_is_kept() -> None:
    storage = StorageClient()
    echo = connect(storage, Echo({}))
    with bind_invoke("bound"):
        await storage.get("k")
    await storage.get("k")

    assert echo.frames[0]["params"]["context"] == {"invoke_id": "bound"}
    assert "context" not in echo.frames[1]["params"]


def test_progress_is_a_notification_of_the_bound_invoke(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert emit_progress("progress", {"step": 1}) is False
    with bind_invoke({"context": {"invoke_id": "i"}}):
        assert emit_progress("tool_update", {"step": 1}) is True
        assert emit_progress("finished", {"step": 2}) is True
        assert emit_progress(data={"odd": object()}) is False
    assert emit_progress(invoke_id="j") is True

    first, second, third = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {
        "jsonrpc": "2.0",
        "method": "executa/progress",
        "params": {"type": "tool_update", "data": {"step": 1}, "context": {"invoke_id": "i"}},
    }
    assert second["params"]["type"] == "progress"
    assert third["params"]["context"] == {"invoke_id": "j"}


def test_progress_may_go_through_a_writer() -> None:
    frames: list[Object] = []
    assert emit_progress(data={"n": 1}, invoke_id="i", write_frame=frames.append) is True
    assert frames[0]["params"]["data"] == {"n": 1}


def test_the_context_of_an_invoke_can_be_read() -> None:
    params = {
        "tool": "t",
        "context": {
            "invoke_id": "i",
            "plugin_name": "p",
            "deadline_ms": "9999999999999",
            "credentials": {"A": "secret"},
        },
    }
    context = InvokeContext.from_params(params)

    assert (context.invoke_id, context.plugin_name) == ("i", "p")
    assert context.has_deadline()
    assert not context.expired()
    assert context.remaining_s() > 1e6
    assert context.credentials == {"A": "secret"}
    assert "secret" not in repr(context)


@pytest.mark.parametrize("params", [None, {}, {"context": 7}, {"context": {"deadline_ms": "soon"}}])
def test_a_context_that_is_missing_or_odd_reads_as_nothing(params: Any) -> None:
    context = InvokeContext.from_params(params)

    assert context.invoke_id is None
    assert not context.has_deadline()
    assert context.remaining_s() == float("inf")
    assert not context.expired()


def test_a_deadline_in_the_past_has_expired() -> None:
    context = InvokeContext.from_params({"deadline_ms": 1})

    assert context.expired()
    assert context.remaining_s() == 0
