"""`grants` in the configuration: a host may take away from what nexus grants, never add."""

import json
from typing import Any

import pytest

from executa_host import Host, PluginSpec
from executa_host.nexus.narrowed import NarrowedNexus, Narrowing
from executa_nexus_stub import NexusStub
from executa_protocol.methods.agent import AgentSessionCreateParams
from executa_protocol.nexus import Caps, Grants, InvokeGrant
from tests.host.conftest import raw_command
from tests.nexus_stub import calls
from tests.support.leaks import LeakCheck

CREATE = AgentSessionCreateParams(kind="agent", agent_submode="auto")


@pytest.mark.parametrize(
    ("granted", "allowed", "left"),
    [
        (("*",), None, ("*",)),
        (("*",), ("*",), ("*",)),
        (("*",), ("a.b",), ("a.b",)),
        (("a.b", "c.d"), ("c.d", "e.f"), ("c.d",)),
        (("a.b",), ("*",), ("a.b",)),
        (("*",), (), ()),
    ],
)
def test_tools_are_those_that_both_allow(
    granted: tuple[str, ...], allowed: tuple[str, ...] | None, left: tuple[str, ...]
) -> None:
    narrowed = Narrowing(tools=allowed).apply(InvokeGrant(granted_tools=granted))
    assert narrowed.granted_tools == left


def test_switches_and_caps_are_the_lesser_of_both() -> None:
    grant = InvokeGrant(
        grants=Grants(sampling=True, storage=True), caps=Caps(tokens=1000, storage_calls=5)
    )
    narrowing = Narrowing(storage=False, tokens=500, storage_calls=10, sampling_calls=0)
    narrowed = narrowing.apply(grant)
    assert narrowed.grants == Grants(sampling=True)
    assert narrowed.caps == Caps(tokens=500, storage_calls=5, sampling_calls=0)


async def test_agent_sessions_get_no_more_tools_than_their_invoke(leak_check: LeakCheck) -> None:
    stub = NexusStub()
    leak_check.watch(stub)
    nexus = NarrowedNexus(stub, {"brief": Narrowing(tools=("notebook.recall",))})
    opening = calls.opening()
    grant = await nexus.open_invoke(opening)
    assert grant.sampling_token is not None
    minted = await nexus.create_agent_session(grant.sampling_token.value, CREATE)
    assert minted.granted_tools == ("notebook.recall",)
    renewed = await nexus.renew_invoke(opening.invoke_id)
    assert renewed.granted_tools == ("notebook.recall",)
    assert renewed.sampling_token is not None
    second = await nexus.create_agent_session(renewed.sampling_token.value, CREATE)
    assert second.granted_tools == ("notebook.recall",)
    refreshed = await nexus.refresh_agent_session(minted.token, minted.app_session_uuid, None)
    assert refreshed.granted_tools == ("notebook.recall",)
    await nexus.delete_agent_session(refreshed.token, minted.app_session_uuid)
    await nexus.close_invoke(opening.invoke_id)
    other = await nexus.open_invoke(calls.opening(plugin="other"))
    assert other.granted_tools == ("*",)
    await nexus.aclose()


async def test_a_plugin_is_held_to_what_its_host_left_it() -> None:
    nexus = NarrowedNexus(
        NexusStub(), {"raw": Narrowing(files=False, sampling_calls=1, tools=("raw.echo",))}
    )
    async with Host(nexus, closes_nexus=True) as host:
        host.add(PluginSpec(name="raw", command=raw_command()))

        async def reverse(method: str, params: dict[str, Any]) -> dict[str, Any]:
            asked = {"method": method, "params": params}
            return (await host.invoke("raw", "reverse", asked)).data

        refused = await reverse("files/list", {"scope": "tool"})
        assert refused["error"]["data"]["missing"] == {"step": "grant", "needs": ["grant: files"]}
        created = await reverse("agent/session.create", {"kind": "agent", "agent_submode": "auto"})
        assert created["result"]["granted_tools"] == ["raw.echo"]
        fixed = {"kind": "fixed", "fixed_client_id": "raw.fail"}
        assert (await reverse("agent/session.create", fixed))["error"]["code"] == -32048
        run = {
            "app_session_uuid": created["result"]["app_session_uuid"],
            "content": "Use raw.fail and raw.echo.",
        }
        answer = await reverse("agent/session.run", run)
        called = [
            frame["name"] for frame in answer["result"]["frames"] if frame["event"] == "tool_call"
        ]
        assert called == ["raw.echo"], json.dumps(answer)
