"""What a plugin tries to get that belongs to another plugin or another user."""

import asyncio
from typing import Any

from executa_protocol import transcript
from tests.host.conftest import Rig

KEEP = ("storage/set", {"scope": "tool", "key": "mine", "value": "secret recipe"})
READ = ("storage/get", {"scope": "tool", "key": "mine"})
LIST = ("storage/list", {"scope": "tool"})


async def test_a_plugin_cannot_act_in_the_name_of_another_plugins_invoke(rig: Rig) -> None:
    rig.add(name="victim")
    rig.add(name="thief")
    running = asyncio.ensure_future(rig.host.invoke("victim", "hang", {}))
    await rig.until(lambda event: isinstance(event, transcript.InvokeStarted))
    (started,) = rig.seen(transcript.InvokeStarted)

    borrowed = {"context": {"invoke_id": started.invoke_id}, "scope": "tool", "key": "mine"}
    answer = await rig.reverse("storage/get", borrowed, plugin="thief")

    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"]["errorCode"] == "UNKNOWN_INVOKE_CONTEXT"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_plugin_does_not_see_what_another_keeps_for_itself(rig: Rig) -> None:
    rig.add(name="cook")
    rig.add(name="thief")

    kept, found = await rig.calls(KEEP, READ, plugin="cook")
    stolen, listed = await rig.calls(READ, LIST, plugin="thief")

    assert "error" not in kept
    assert found["result"]["value"] == "secret recipe"
    assert stolen["result"]["exists"] is False
    assert listed["result"]["items"] == []


async def test_a_plugin_does_not_see_what_another_user_keeps(rig: Rig) -> None:
    rig.add(name="cook")

    def asked(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"calls": [{"method": method, "params": params}]}

    await rig.host.invoke("cook", "calls", asked(*KEEP), user_id="ada")
    of_ada = await rig.host.invoke("cook", "calls", asked(*READ), user_id="ada")
    of_bob = await rig.host.invoke("cook", "calls", asked(*READ), user_id="bob")

    assert of_ada.data[0]["result"]["value"] == "secret recipe"
    assert of_bob.data[0]["result"]["exists"] is False
    assert rig.host.pid("cook", user_id="ada") != rig.host.pid("cook", user_id="bob")
