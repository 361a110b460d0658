"""The field's own test kit, `anna-executa-test`, holds for every Python example.

It knows neither the handshake nor reverse calls: to it our plugins are v1 plugins, and they
must still describe themselves and answer.
"""

import asyncio
import gc
import json
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.driver import child, invoke_message

kit: Any = import_module("anna_executa_test")  # it has no type stubs

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/plugin.py"))

in_each_example = pytest.mark.parametrize("plugin", EXAMPLES, ids=lambda path: path.parent.name)


def values_for(parameters: list[dict[str, Any]]) -> dict[str, Any]:
    """Some argument of the right type for each required parameter."""
    some: dict[str, Any] = {
        "string": "x",
        "integer": 1,
        "number": 1.5,
        "boolean": True,
        "array": [],
        "object": {},
    }
    return {entry["name"]: some[entry["type"]] for entry in parameters if entry["required"]}


@in_each_example
def test_the_contract_of_each_example_is_read(plugin: Path) -> None:
    with warnings.catch_warnings():
        # Its client leaves its pipes to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        contract = kit.contract_for(plugin.parent, command=[sys.executable, str(plugin)])
        gc.collect()

    assert contract.tools
    assert contract.manifest["name"] == plugin.parent.name
    assert contract.version == contract.manifest["version"]
    assert contract.tool_id == f"executa-example-{plugin.parent.name}"
    cases = [(tool.name, values_for(tool.parameters)) for tool in contract.tools]
    assert contract.parametrize_invoke(cases)


@in_each_example
async def test_every_answer_of_each_example_is_well_formed(plugin: Path) -> None:
    async with child(plugin) as running:
        manifest = (await running.request("describe", None, "describe"))["result"]
        for number, tool in enumerate(manifest["tools"]):
            running.write(
                invoke_message(number, tool["name"], **values_for(tool["parameters"])),
                invoke_message(f"bad {number}", tool["name"], no_such_argument=1),
            )
        running.write(
            invoke_message("unknown", "no_such_tool"),
            {"jsonrpc": "2.0", "id": "health", "method": "health"},
            {"jsonrpc": "2.0", "id": "shutdown", "method": "shutdown"},
            {"jsonrpc": "2.0", "id": "method", "method": "no/such/method"},
            b"not json\n",
        )
        assert running.process.stdin
        running.process.stdin.close()  # so that reverse calls, which nobody answers, fail
        answers = [message for message in await running.read_all() if "method" not in message]
        assert await running.gone() == 0

    assert len(answers) == 2 * len(manifest["tools"]) + 5
    for answer in answers:
        kit.wire_format.validate_response(answer)
        result = answer.get("result")
        if isinstance(answer["id"], int) and result is not None:
            kit.wire_format.validate_invoke_result(result)


@in_each_example
async def test_its_client_can_drive_each_example(plugin: Path) -> None:
    def drive() -> None:
        with kit.executa.spawn(plugin.parent, command=[sys.executable, str(plugin)]) as client:
            kit.describe_plugin(client)
            assert client.health()["status"] == "ready"
            with pytest.raises(kit.JsonRpcError) as caught:
                client.invoke("no_such_tool")
            kit.assert_jsonrpc_error(caught.value, code=-32601, message_contains="no_such_tool")
            assert json.dumps(caught.value.data)
        assert client.proc.returncode == 0
        assert "Traceback" not in "".join(client.stderr_lines)
        client.proc.stdout.close()
        client.proc.stderr.close()

    await asyncio.to_thread(drive)


def test_a_result_and_a_failure_have_the_shape_that_it_wants() -> None:
    (hello,) = [path for path in EXAMPLES if path.parent.name == "hello"]
    with kit.executa.spawn(hello.parent, command=[sys.executable, str(hello)]) as client:
        good = client.invoke("greet", {"name": "Ada"})
        bad = client.invoke("greet", {"name": " "})
    client.proc.stdout.close()
    client.proc.stderr.close()

    kit.wire_format.validate_invoke_result(good)
    kit.assert_jsonrpc_ok(good)
    kit.wire_format.validate_invoke_result(bad)
    assert bad["success"] is False


async def test_without_a_v2_handshake_no_reverse_call_leaves_the_plugin() -> None:
    hello = next(path for path in EXAMPLES if path.parent.name == "hello")
    async with child(hello) as running:
        answer = await running.invoke("count", name="Ada")

        assert answer["error"]["data"]["cause"]["code"] == -32021
        assert "needs protocol 2.0" in answer["error"]["message"]
        assert running.seen == [answer]
