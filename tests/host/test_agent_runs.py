"""Runs of agent sessions: buffered, in turn, bounded, cancelled here and upstream (R-31, R-32)."""

import asyncio
import json
from typing import Any

import pytest

from executa_host import InvokeTimeout, Patience
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.faults import FaultConfig, FaultRule
from executa_protocol import transcript
from executa_protocol.errors import ConnectionLost
from executa_protocol.limits import AGENT_MAX_FRAMES
from tests.host.conftest import MakeRig, Rig, soon
from tests.host.scripted_model import ScriptedModel, program

CREATE: dict[str, Any] = {"kind": "agent", "agent_submode": "auto"}


class Agent:
    """A rig whose plugin has agent sessions on a nexus with a scripted model."""

    def __init__(self, make_rig: MakeRig, *rules: FaultRule, **options: Any) -> None:
        self.model = ScriptedModel()
        config = StubConfig(faults=FaultConfig(rules=rules, seed=1))
        self.nexus = NexusStub(config, models=[self.model])
        self.rig: Rig = make_rig(self.nexus, **options)
        self.rig.add()
        self.cancelled: list[str] = []
        cancel_run = self.nexus.cancel_run

        async def noted(token: str, run_id: str) -> bool:
            self.cancelled.append(run_id)
            return await cancel_run(token, run_id)

        self.nexus.cancel_run = noted

    async def create(self, **params: Any) -> str:
        (answer,) = await self.rig.calls(("agent/session.create", CREATE | params))
        return answer["result"]["app_session_uuid"]

    def run(self, uuid: str, content: str, **params: Any) -> "asyncio.Task[dict[str, Any]]":
        """Begin an invoke that runs the agent session and gives what it was answered."""
        asked = {"app_session_uuid": uuid, "content": content} | params
        return asyncio.ensure_future(self.rig.reverse("agent/session.run", asked))

    async def cancel(self, uuid: str, run_id: str) -> dict[str, Any]:
        params = {"app_session_uuid": uuid, "run_id": run_id}
        return await self.rig.reverse("agent/session.cancel", params)

    async def upstream_cancelled(self, *run_ids: str) -> None:
        """Wait until the host has done what it does in the background."""
        await self.rig.host.close()
        assert self.cancelled == list(run_ids)


def _events(answer: dict[str, Any]) -> list[str]:
    return [frame["event"] for frame in answer["result"]["frames"]]


def _code(answer: dict[str, Any]) -> int:
    return answer["error"]["code"] if "error" in answer else 0


# --- The answer ------------------------------------------------------------------------------


async def test_a_run_answers_all_its_frames_and_the_final_one(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    answer = await agent.run(uuid, program([{"say": "Plan"}, {"say": " it"}]), run_id="mine")
    assert answer["result"]["run_id"] == "mine"
    assert _events(answer) == ["delta", "delta", "final"]
    assert answer["result"]["final"] == answer["result"]["frames"][-1]
    assert answer["result"]["final"]["text"] == "Plan it"
    assert len((await agent.run(uuid, program([])))["result"]["run_id"]) == 32
    ended = agent.rig.seen(transcript.InvokeEnded)[1]
    assert (ended.agent_runs, ended.frames, ended.tokens) == (1, 3, 1)


async def test_strict_mode_answers_the_bare_array(make_rig: MakeRig) -> None:
    agent = Agent(make_rig, strict=True)
    uuid = await agent.create()
    answer = await agent.run(uuid, program([{"say": "x"}]))
    assert [frame["event"] for frame in answer["result"]] == ["delta", "final"]


async def test_dialects_become_the_seeds_frames_and_unknown_events_pass(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    content = program(
        [
            {"raw": {"event": "token", "text": "a"}},
            {"raw": {"event": "weather", "sun": True}},
            {"raw": {"event": "keepalive"}},
        ]
    )
    answer = await agent.run(uuid, content)
    assert answer["result"]["frames"][:2] == [
        {"event": "delta", "text": "a"},
        {"event": "weather", "sun": True},
    ]


# --- Caps ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deltas", "code", "cancelled"),
    [
        (AGENT_MAX_FRAMES - 1, 0, []),
        (AGENT_MAX_FRAMES, -32047, []),  # the final frame is one too many: it has ended by itself
        (AGENT_MAX_FRAMES + 1, -32047, ["r"]),
    ],
)
async def test_a_run_has_4096_frames_and_not_one_more(
    make_rig: MakeRig, deltas: int, code: int, cancelled: list[str]
) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    answer = await agent.run(uuid, program([{"say": "x", "times": deltas}]), run_id="r")
    assert _code(answer) == code
    if code == 0:
        assert len(answer["result"]["frames"]) == AGENT_MAX_FRAMES
    await agent.upstream_cancelled(*cancelled)
    assert agent.nexus.in_flight == 0


async def test_an_answer_over_the_line_cap_is_refused_and_the_stream_closed(
    make_rig: MakeRig,
) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    content = program([{"say": "x" * 4_000_000, "times": 5}])
    answer = await agent.run(uuid, content, run_id="r")
    assert _code(answer) == -32047
    assert (await agent.rig.host.invoke("raw", "echo", {"value": {}})).success
    await agent.upstream_cancelled("r")


async def test_a_run_may_use_no_more_tokens_than_are_left(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    await agent.run(uuid, program([]), maxTokens=65_536)
    await agent.run(uuid, program([]))
    assert [request.max_tokens for request in agent.model.requests] == [32_000, 8192]


# --- In turn ---------------------------------------------------------------------------------


async def test_runs_of_one_agent_session_follow_each_other(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    first = agent.run(uuid, program([{"hold": "first"}, {"say": "1"}]))
    await agent.model.reached("first")
    second = agent.run(uuid, program([{"say": "2"}]))
    await agent.rig.until(lambda _: len(agent.rig.seen(transcript.ReverseStarted)) == 3)
    assert len(agent.model.requests) == 1
    agent.model.release("first")
    assert [(await soon(run))["result"]["final"]["text"] for run in (first, second)] == ["1", "2"]
    # The second one has read what the first one said.
    assert any(message.text == "1" for message in agent.model.requests[1].messages)


async def test_runs_of_different_agent_sessions_go_side_by_side(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    runs: list[asyncio.Task[dict[str, Any]]] = []
    for name in ("a", "b"):
        uuid = await agent.create()
        runs.append(agent.run(uuid, program([{"hold": name}, {"say": name}])))
    await agent.model.reached("a")
    await agent.model.reached("b")
    agent.model.release("b")
    assert (await soon(runs[1]))["result"]["final"]["text"] == "b"
    agent.model.release("a")
    assert (await soon(runs[0]))["result"]["final"]["text"] == "a"


async def test_a_run_id_is_used_by_one_live_run_at_a_time(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    first = agent.run(uuid, program([{"hold": "x"}]), run_id="r")
    await agent.model.reached("x")
    assert _code(await agent.run(uuid, program([]), run_id="r")) == -32602
    agent.model.release("x")
    assert _code(await soon(first)) == 0
    assert _code(await agent.run(uuid, program([]), run_id="r")) == 0


# --- Cancelled -------------------------------------------------------------------------------


async def test_cancelling_a_streaming_run_answers_it_with_the_frames_so_far(
    make_rig: MakeRig,
) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    content = program([{"say": "so far"}, {"hold": "x"}, {"say": "never"}])
    running = agent.run(uuid, content, run_id="r")
    await agent.model.reached("x")
    await agent.rig.until(lambda event: isinstance(event, transcript.RunFrame))
    answer = await agent.cancel(uuid, "r")
    assert answer["result"] == {"cancelled": True, "run_id": "r"}
    ran = await soon(running)
    assert _events(ran) == ["delta", "final"]
    assert ran["result"]["final"]["cancelled"] is True
    assert ran["result"]["final"]["text"] == "so far"
    await agent.upstream_cancelled("r")


async def test_a_cancelled_runs_own_last_frame_tells_what_it_has_used(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    running = agent.run(uuid, program([{"say": "some words said"}, {"hold": "x"}]), run_id="r")
    await agent.model.reached("x")
    await agent.rig.until(lambda event: isinstance(event, transcript.RunFrame))
    await agent.cancel(uuid, "r")
    usage = (await soon(running))["result"]["final"]["usage"]
    run_ended = [e for e in agent.rig.seen(transcript.InvokeEnded) if e.agent_runs]
    assert run_ended[0].tokens == usage["outputTokens"] > 0
    assert run_ended[0].tokens_used == run_ended[0].tokens


async def test_a_run_is_cancelled_here_when_nexus_does_not_listen(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executa_host.reverse.live_run.LAST_FRAME_WAIT", 0.1)
    agent = Agent(make_rig, FaultRule(kind="error", endpoint="cancel_run"))
    uuid = await agent.create()
    running = agent.run(uuid, program([{"say": "so far"}, {"hold": "x"}]), run_id="r")
    await agent.model.reached("x")
    await agent.rig.until(lambda event: isinstance(event, transcript.RunFrame))
    assert (await agent.cancel(uuid, "r"))["result"]["cancelled"] is True
    ran = await soon(running)
    assert ran["result"]["frames"] == [
        {"event": "delta", "text": "so far"},
        {"event": "final", "text": "so far", "cancelled": True},
    ]


async def test_a_run_that_waits_for_its_turn_can_be_cancelled(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    first = agent.run(uuid, program([{"hold": "x"}]), run_id="first")
    await agent.model.reached("x")
    second = agent.run(uuid, program([{"say": "never"}]), run_id="second")
    await agent.rig.until(lambda _: len(agent.rig.seen(transcript.ReverseStarted)) == 3)
    assert (await agent.cancel(uuid, "second"))["result"]["cancelled"] is True
    assert (await soon(second))["result"]["frames"] == [
        {"event": "final", "text": "", "cancelled": True}
    ]
    agent.model.release("x")
    assert _code(await soon(first)) == 0
    assert len(agent.model.requests) == 1
    await agent.upstream_cancelled()  # of the second one nexus never heard


async def test_cancelling_what_has_ended_or_never_was_is_no_error(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    await agent.run(uuid, program([]), run_id="r")
    for run_id in ("r", "never"):
        assert (await agent.cancel(uuid, run_id))["result"] == {
            "cancelled": False,
            "run_id": run_id,
        }


async def test_deleting_an_agent_session_cancels_its_runs(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    running = agent.run(uuid, program([{"say": "a"}, {"hold": "x"}]), run_id="r")
    await agent.model.reached("x")
    params = {"app_session_uuid": uuid}
    assert (await agent.rig.reverse("agent/session.delete", params))["result"]["deleted"]
    assert (await soon(running))["result"]["final"]["cancelled"] is True
    assert _code(await agent.run(uuid, program([]))) == -32044


async def test_a_run_ends_upstream_with_its_invoke(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    asked = {"app_session_uuid": uuid, "content": program([{"hold": "x"}]), "run_id": "r"}
    arguments = {"method": "agent/session.run", "params": asked}
    with pytest.raises(InvokeTimeout):
        await agent.rig.host.invoke("raw", "reverse", arguments, timeout=0.3)
    await agent.rig.until(
        lambda event: (
            isinstance(event, transcript.ReverseEnded)
            and event.symbol == "INVOKE_CANCELLED"
            and event.method == "agent/session.run"
        )
    )
    await agent.upstream_cancelled("r")
    assert agent.nexus.in_flight == 0


async def test_a_run_ends_upstream_when_its_plugin_dies(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    running = agent.run(uuid, program([{"hold": "x"}]), run_id="r")
    await agent.model.reached("x")
    with pytest.raises(ConnectionLost):
        await agent.rig.host.invoke("raw", "die")
    with pytest.raises(ConnectionLost):
        await soon(running)
    await agent.upstream_cancelled("r")
    assert agent.nexus.in_flight == 0


async def test_a_nexus_that_hangs_does_not_hold_a_host_that_closes(make_rig: MakeRig) -> None:
    slow = FaultRule(kind="latency", endpoint="cancel_run", seconds=3600)
    agent = Agent(make_rig, slow, patience=Patience(cleanup=0.2, stop=0.2))
    uuid = await agent.create()
    running = agent.run(uuid, program([{"hold": "x"}]), run_id="r")
    await agent.model.reached("x")
    async with asyncio.timeout(5):
        await agent.rig.host.close()
    with pytest.raises(ConnectionLost):
        await soon(running)


# --- Nexus fails -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (FaultRule(kind="error", endpoint="run_agent", status=500), -32046),
        (FaultRule(kind="error", endpoint="run_agent", status=0), -32046),
        (FaultRule(kind="rate_limit", endpoint="run_agent"), -32046),
        (FaultRule(kind="error", endpoint="run_agent", status=401), -32018),
        (FaultRule(kind="cut", endpoint="run_agent", after=1), -32046),
    ],
    ids=["500", "down", "429", "401", "cut"],
)
async def test_a_run_that_nexus_fails_is_answered_by_the_chapters_code(
    make_rig: MakeRig, rule: FaultRule, code: int
) -> None:
    agent = Agent(make_rig, rule)
    uuid = await agent.create()
    answer = await agent.run(uuid, program([{"say": "a", "times": 3}]), run_id="r")
    assert _code(answer) == code
    # What was cut may go on upstream; what never began does not.
    await agent.upstream_cancelled(*(["r"] if rule.kind == "cut" else []))
    ended = next(e for e in agent.rig.seen(transcript.InvokeEnded) if e.agent_runs)
    assert ended.tokens_used == 0


async def test_a_run_whose_model_fails_gives_its_tokens_back(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    answer = await agent.run(uuid, program([{"say": "a"}, {"fail": 503}]))
    assert _code(answer) == -32046
    ended = agent.rig.seen(transcript.InvokeEnded)[-1]
    assert (ended.agent_runs, ended.frames, ended.tokens_used) == (1, 1, 0)


async def test_a_frame_that_cannot_be_read_is_lost_alone_and_told(make_rig: MakeRig) -> None:
    agent = Agent(make_rig, FaultRule(kind="malformed", endpoint="run_agent", after=1))
    uuid = await agent.create()
    answer = await agent.run(uuid, program([{"say": "a"}, {"say": "b"}]))
    assert answer["result"]["final"]["text"] == "ab"
    assert any(event.kind == "frame" for event in agent.rig.seen(transcript.Noise))


async def test_a_stream_that_ends_without_a_final_frame_is_a_failure(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    error = {"event": "error", "code": "quota_exhausted", "message": "no more today"}
    answer = await agent.run(uuid, program([{"raw": error}]))
    assert _code(answer) == -32046
    assert "no more today" in answer["error"]["message"]
    assert answer["error"]["data"]["upstream"] == "quota_exhausted"


async def test_an_agent_session_that_nexus_no_longer_knows_is_forgotten(make_rig: MakeRig) -> None:
    gone = FaultRule(kind="error", endpoint="run_agent", status=410, times=1)
    agent = Agent(make_rig, gone)
    uuid = await agent.create()
    assert _code(await agent.run(uuid, program([]))) == -32017
    assert _code(await agent.run(uuid, program([]))) == -32044


async def test_no_token_of_an_agent_session_is_in_any_answer(make_rig: MakeRig) -> None:
    agent = Agent(make_rig)
    uuid = await agent.create()
    answers = [await agent.run(uuid, program([{"say": "a"}])), await agent.cancel(uuid, "r")]
    assert "eyJ" not in json.dumps(answers)
