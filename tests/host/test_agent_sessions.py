"""Agent sessions: their cache, their owners, their lives (R-30, R-33, R-38)."""

import json
from typing import Any

import pytest

from executa_host.agent_sessions import AgentSessionEntry, AgentSessions
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.config import AgentLimits
from executa_nexus_stub.faults import FaultConfig, FaultRule
from executa_protocol import transcript
from executa_protocol.errors import AgentError, ConnectionLost
from executa_protocol.nexus import MintedAgentSession
from tests.host.clocks import HostClock
from tests.host.conftest import MakeRig, Rig
from tests.host.scripted_model import ScriptedModel, program

CREATE: dict[str, Any] = {"kind": "agent", "agent_submode": "auto"}
ME = ("local", "raw")


def minted(uuid: str, expires_at: float = 2e9) -> MintedAgentSession:
    return MintedAgentSession(uuid, f"token-{uuid}", f"thread-{uuid}", expires_at)


class Busy:
    """A run that is live, as far as the cache can tell."""

    invoke: Any = None

    async def cancel(self) -> bool:
        return True


def _code(answer: dict[str, Any]) -> int:
    return answer["error"]["code"] if "error" in answer else 0


# --- The cache alone -------------------------------------------------------------------------


def test_the_least_recently_used_makes_room() -> None:
    evicted: list[AgentSessionEntry] = []
    cache = AgentSessions(3, on_evicted=evicted.append)
    for uuid in "abc":
        cache.add(minted(uuid), ME)
    cache.find("a", ME)
    cache.add(minted("d"), ME)
    assert [cache.knows(uuid) for uuid in "abcd"] == [True, False, True, True]
    assert [entry.minted.app_session_uuid for entry in evicted] == ["b"]
    assert len(cache) == 3


def test_one_that_a_run_uses_is_not_evicted() -> None:
    cache = AgentSessions(2)
    cache.add(minted("a"), ME).runs["r"] = Busy()
    cache.add(minted("b"), ME)
    cache.add(minted("c"), ME)
    assert [cache.knows(uuid) for uuid in "abc"] == [True, False, True]


def test_a_new_one_stays_also_when_all_others_are_in_use() -> None:
    cache = AgentSessions(2)
    for uuid in "ab":
        cache.add(minted(uuid), ME).runs["r"] = Busy()
    cache.add(minted("c"), ME)
    assert [cache.knows(uuid) for uuid in "abc"] == [True, True, True]


def test_absent_is_one_error_and_somebody_elses_another_and_nothing_is_touched() -> None:
    cache = AgentSessions(2)
    cache.add(minted("a"), ("local", "other"))
    cache.add(minted("b"), ("ann", "raw"))
    with pytest.raises(AgentError) as unknown:
        cache.find("x", ME)
    assert unknown.value.code == -32044
    for uuid in "ab":
        with pytest.raises(AgentError) as foreign:
            cache.find(uuid, ME)
        assert foreign.value.code == -32045
    cache.add(minted("c"), ME)
    assert not cache.knows("a")  # looking at it did not make it more recent


def test_an_expired_one_is_evicted_unless_a_run_uses_it() -> None:
    clock = HostClock(1000)
    cache = AgentSessions(clock=clock.now)
    cache.add(minted("a", 1010), ME)
    cache.add(minted("b", 1010), ME).runs["r"] = Busy()
    clock.advance(10)
    for uuid in "ab":
        with pytest.raises(AgentError) as expired:
            cache.find(uuid, ME)
        assert expired.value.code == -32044
    assert [cache.knows(uuid) for uuid in "ab"] == [False, True]
    assert cache.find("b", ME, even_expired=True).in_use


def test_a_foreign_one_is_foreign_also_when_it_has_expired() -> None:
    clock = HostClock(1000)
    cache = AgentSessions(clock=clock.now)
    cache.add(minted("a", 1010), ("ann", "raw"))
    clock.advance(10)
    with pytest.raises(AgentError) as foreign:
        cache.find("a", ME)
    assert foreign.value.code == -32045
    assert cache.knows("a")


def test_runs_prolong_a_life_by_as_much_as_it_had() -> None:
    clock = HostClock(1000)
    cache = AgentSessions(clock=clock.now)
    entry = cache.add(minted("a", 1600), ME)
    clock.advance(500)
    cache.slide(entry)
    assert entry.expires_at == 2100
    assert not entry.token_expires_soon(1569)
    assert entry.token_expires_soon(1570)  # the token has an end of its own


def test_what_a_session_covers() -> None:
    def covers(tool: str, **members: Any) -> bool:
        session = MintedAgentSession("u", "t", "th", 2e9, **members)
        return AgentSessionEntry(session, ME, 0.0).covers(tool)

    assert covers("a.b", granted_tools=("*",))
    assert covers("a.b", granted_tools=("x.y", "a.b"))
    assert not covers("a.b", granted_tools=("a.c",))
    assert not covers("a.b")
    assert covers("a.b", kind="fixed", fixed_client_id="a.b", granted_tools=("*",))
    assert not covers("a.c", kind="fixed", fixed_client_id="a.b", granted_tools=("*",))


# --- In a host -------------------------------------------------------------------------------


async def _create(rig: Rig, plugin: str = "raw", **params: Any) -> str:
    answer = (await rig.calls(("agent/session.create", CREATE | params), plugin=plugin))[0]
    return answer["result"]["app_session_uuid"]


async def test_creating_gives_the_uuid_and_keeps_the_token(rig: Rig) -> None:
    rig.add()
    (answer,) = await rig.calls(("agent/session.create", CREATE | {"label": "a trace"}))
    result = answer["result"]
    assert set(result) >= {"app_session_uuid", "thread_id", "agent_submode", "granted_tools"}
    assert (result["agent_submode"], result["granted_tools"]) == ("auto", ["*"])
    assert "token" not in json.dumps(answer)


async def test_every_method_tells_unknown_from_foreign(rig: Rig) -> None:
    rig.add()
    rig.add(name="other")
    foreign = await _create(rig, plugin="other")
    methods: list[tuple[str, dict[str, Any]]] = [
        ("agent/session.run", {"content": "x"}),
        ("agent/session.cancel", {"run_id": "r"}),
        ("agent/session.history", {}),
        ("agent/session.refresh", {}),
        ("agent/session.delete", {}),
    ]
    for uuid, expected in ((foreign, -32045), ("never-seen", -32044)):
        answers = await rig.calls(
            *((method, {"app_session_uuid": uuid} | params) for method, params in methods)
        )
        codes = [_code(answer) for answer in answers]
        # Deleting what is not there is done already.
        assert codes == [expected] * 4 + [0 if uuid == "never-seen" else expected]
    params = {"app_session_uuid": foreign}
    (untouched,) = await rig.calls(("agent/session.history", params), plugin="other")
    assert untouched["result"] == []


async def test_another_users_agent_session_is_foreign_too(rig: Rig) -> None:
    rig.add()
    mine = await _create(rig)
    asked = {"method": "agent/session.history", "params": {"app_session_uuid": mine}}
    outcome = await rig.host.invoke("raw", "reverse", asked, user_id="ann")
    assert _code(outcome.data) == -32045


async def test_deleting_is_idempotent_and_ends_it_upstream(rig: Rig) -> None:
    rig.add()
    uuid = await _create(rig)
    params = {"app_session_uuid": uuid}
    answers = await rig.calls(
        ("agent/session.delete", params),
        ("agent/session.delete", params),
        ("agent/session.history", params),
    )
    assert [answer.get("result") for answer in answers[:2]] == [{"deleted": True}] * 2
    assert _code(answers[2]) == -32044
    assert "agent_sessions=0" in repr(rig.nexus)


async def test_a_delete_that_nexus_does_not_hear_is_a_delete_here(make_rig: MakeRig) -> None:
    rule = FaultRule(kind="error", endpoint="delete_agent_session")
    rig = make_rig(NexusStub(StubConfig(faults=FaultConfig(rules=(rule,)))))
    rig.add()
    uuid = await _create(rig)
    params = {"app_session_uuid": uuid}
    answers = await rig.calls(("agent/session.delete", params), ("agent/session.history", params))
    assert [_code(answer) for answer in answers] == [0, -32044]


async def test_the_cache_ends_with_the_process(rig: Rig) -> None:
    rig.add()
    uuid = await _create(rig)
    await rig.host.restart("raw")
    (answer,) = await rig.calls(("agent/session.history", {"app_session_uuid": uuid}))
    assert _code(answer) == -32044
    assert "create one" in answer["error"]["message"]
    await rig.host.close()
    assert "agent_sessions=0" in repr(rig.nexus)  # it was ended upstream too


async def test_a_crash_ends_them_as_well(rig: Rig) -> None:
    rig.add()
    await _create(rig)
    with pytest.raises(ConnectionLost):
        await rig.host.invoke("raw", "die")
    await rig.until(lambda event: isinstance(event, transcript.Exited))
    await rig.host.close()
    assert "agent_sessions=0" in repr(rig.nexus)


async def test_listing_shows_ones_own_and_refreshing_prolongs_them(make_rig: MakeRig) -> None:
    clock = HostClock()
    rig = make_rig(NexusStub(clock=clock), clock=clock)
    rig.add()
    rig.add(name="other")
    first = await _create(rig, label="first", ttl_seconds=600)
    await _create(rig, plugin="other")
    second = await _create(rig, ttl_seconds=60)
    clock.advance(61)
    (some, everything) = await rig.calls(
        ("agent/session.list", {}), ("agent/session.list", {"include_expired": True})
    )
    assert [entry["app_session_uuid"] for entry in some["result"]["sessions"]] == [first]
    assert some["result"]["sessions"][0]["label"] == "first"
    assert len(everything["result"]["sessions"]) == 2
    params = {"app_session_uuid": first, "ttl_seconds": 1200}
    (refreshed,) = await rig.calls(("agent/session.refresh", params))
    assert refreshed["result"]["expires_at"] == clock.now() + 1200
    assert "token" not in json.dumps(refreshed)
    (gone,) = await rig.calls(("agent/session.refresh", {"app_session_uuid": second}))
    assert _code(gone) == -32044


async def test_a_session_that_slides_gets_a_new_token_when_its_own_is_old(
    make_rig: MakeRig,
) -> None:
    """The token ends after 600 s; the agent session goes on as long as it is used."""
    clock = HostClock()
    nexus = NexusStub(
        StubConfig(agent=AgentLimits(idle=3600)), clock=clock, models=[ScriptedModel()]
    )
    rig = make_rig(nexus, clock=clock)
    rig.add()
    uuid = await _create(rig)
    run = ("agent/session.run", {"app_session_uuid": uuid, "content": program([{"say": "x"}])})
    for _ in range(4):
        clock.advance(580)
        (answer,) = await rig.calls(run)
        assert answer["result"]["final"]["text"] == "x"
    clock.advance(601)
    (answer,) = await rig.calls(run)
    assert _code(answer) == -32044


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"kind": "agent"}, -32042),
        ({"kind": "agent", "agent_submode": "fixed"}, -32042),
        ({"kind": "fixed"}, -32043),
        ({"kind": "fixed", "fixed_client_id": ""}, -32043),
        ({"kind": "other"}, -32602),
        ({"kind": "fixed", "fixed_client_id": "not.granted"}, -32048),
    ],
)
async def test_what_cannot_be_created_has_its_own_code(
    make_rig: MakeRig, params: dict[str, Any], code: int
) -> None:
    nexus = NexusStub()
    nexus.directory.change("local", "raw", granted_tools=["raw.echo"])
    rig = make_rig(nexus)
    rig.add()
    (answer,) = await rig.calls(("agent/session.create", params))
    assert _code(answer) == code


async def test_the_fields_spellings_are_read_in_tolerant_mode_only(
    rig: Rig, strict_rig: Rig
) -> None:
    for each, code in ((rig, 0), (strict_rig, -32602)):
        each.add()
        answers = await each.calls(
            ("agent/session.create", {"agent_submode": "auto"}),
            ("agent/session.create", {"kind": "agent", "submode": "auto"}),
        )
        assert [_code(answer) for answer in answers] == [code, code]


async def test_nexus_failing_is_the_chapters_upstream_error(make_rig: MakeRig) -> None:
    rule = FaultRule(kind="error", endpoint="create_agent_session", status=500)
    rig = make_rig(NexusStub(StubConfig(faults=FaultConfig(rules=(rule,)))))
    rig.add()
    (answer,) = await rig.calls(("agent/session.create", CREATE))
    assert _code(answer) == -32046
    assert answer["error"]["data"]["status"] == 500
