"""Agent runs: frames as the seed has them, host-executed tools, cancellation (R-31 to R-36)."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, cast

import pytest
from msgspec import Raw

from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.models.base import (
    Completion,
    Message,
    ModelInfo,
    ModelRequest,
    RawFrame,
    TextPiece,
    TokenUsage,
    ToolSpec,
    ToolUse,
    TurnEnd,
    TurnEvent,
)
from executa_nexus_stub.models.faulty import FaultyModel, ModelFaults
from executa_nexus_stub.models.offline import OfflineModel
from executa_protocol import codec
from executa_protocol.frames import read_frame
from executa_protocol.nexus import AgentRun, HostTool, Nexus, NexusError, ToolOutcome
from tests.nexus_stub.calls import RECALL, events, play, refused_as, run, session, until

QUESTION = "What do my notes say on boats? Use notebook.recall."
NOTE = {"matches": [{"text": "The boat is red."}]}


def give_note(_: dict[str, Any]) -> tuple[bool, Any]:
    return True, NOTE


class Scripted:
    """A model whose turns are written down; `hold` stops it in the middle of one."""

    info = ModelInfo(name="scripted")

    def __init__(self, *turns: Sequence[TurnEvent]) -> None:
        self.turns = list(turns)
        self.requests: list[ModelRequest] = []
        self.offered: list[tuple[ToolSpec, ...]] = []
        self.reached = asyncio.Event()
        self.closed = 0

    async def complete(self, request: ModelRequest) -> Completion:
        return Completion("", "endTurn", TokenUsage())

    async def turn(
        self, request: ModelRequest, tools: Sequence[ToolSpec]
    ) -> AsyncIterator[TurnEvent]:
        self.requests.append(request)
        self.offered.append(tuple(tools))
        try:
            script = self.turns[len(self.requests) - 1]
            for event in script:
                yield event
            if not isinstance(script[-1], TurnEnd):
                self.reached.set()
                await asyncio.Event().wait()
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        pass


END = TurnEnd("endTurn", TokenUsage(7, 3))


async def with_model(
    clock: ManualClock, *turns: Sequence[TurnEvent], **config: Any
) -> tuple[NexusStub, Scripted, str]:
    """A stub with a scripted model, and a session token."""
    model = Scripted(*turns)
    stub = NexusStub(StubConfig(**config), clock=clock, models=[model])
    return stub, model, (await session(stub)).token


async def next_frame(stream: AsyncGenerator[bytes, None]) -> dict[str, Any]:
    """The next frame of a run, within bounded time."""
    async with asyncio.timeout(10):
        return cast("dict[str, Any]", codec.decode_any(await anext(stream)))


async def test_a_run_streams_pieces_of_text_and_ends_with_the_whole(nexus: Nexus) -> None:
    minted = await session(nexus)

    frames = await play(
        nexus, minted.token, run("Boats float on the open water and are quite long.")
    )

    assert events(frames) == ["delta", "final"]
    pieces = [frame["text"] for frame in frames if frame["event"] == "delta"]
    assert len(pieces) > 1
    assert frames[-1]["text"] == "".join(pieces)
    usage = frames[-1]["usage"]
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]
    assert all(read_frame(codec.encode(frame)) for frame in frames)


async def test_a_granted_tool_is_executed_by_the_host_and_its_result_used(
    nexus: Nexus, stub: NexusStub
) -> None:
    minted = await session(nexus)

    frames = await play(nexus, minted.token, run(QUESTION, RECALL), give_note)

    assert events(frames) == ["tool_call", "tool_result", "delta", "final"]
    call, result = frames[0], frames[1]
    assert (call["name"], call["args"]) == ("notebook.recall", {"query": "notes boats"})
    assert call["executor"] == "host"
    assert result == {"event": "tool_result", "call_id": call["call_id"], "ok": True, "data": NOTE}
    assert frames[-1]["text"] == "From notebook.recall: The boat is red."
    spent = stub.ledger.total()
    assert (spent.agent_runs, spent.tool_calls, spent.frames) == (1, 1, len(frames))
    assert spent.output_tokens == frames[-1]["usage"]["outputTokens"]


async def test_a_tool_that_fails_is_told_to_the_model(nexus: Nexus) -> None:
    minted = await session(nexus)

    frames = await play(
        nexus, minted.token, run(QUESTION, RECALL), lambda _: (False, {"error": "no disk"})
    )

    assert frames[1]["ok"] is False
    assert frames[-1]["text"] == "notebook.recall failed: no disk."


async def test_a_thread_remembers_earlier_turns(nexus: Nexus) -> None:
    minted = await session(nexus)
    await play(nexus, minted.token, run(QUESTION, RECALL, run_id="1"), give_note)

    frames = await play(nexus, minted.token, run("What colour has the boat?", run_id="2"))

    assert frames[-1]["text"] == "The boat is red."


async def test_calls_of_one_turn_are_all_asked_for_before_any_is_waited_for(
    clock: ManualClock,
) -> None:
    calls = (ToolUse("a.one", {}), ToolUse("a.two", {"x": 1}), END)
    stub, model, token = await with_model(clock, calls, (TextPiece("done"), END))
    tools = [HostTool(name, "", {}) for name in ("a.one", "a.two")]
    stream = cast("Any", stub.run_agent(token, run("go", *tools)))

    first, second = await next_frame(stream), await next_frame(stream)
    assert stub.pending_count == 2
    for frame in (second, first):  # in whichever order they end
        data = Raw(codec.encode(frame["name"]))
        await stub.post_tool_result(token, ToolOutcome("run", frame["call_id"], True, data))
    rest = [await next_frame(stream) for _ in range(4)]

    assert [frame["event"] for frame in rest] == ["tool_result", "tool_result", "delta", "final"]
    assert [frame.get("data") for frame in rest[:2]] == ["a.one", "a.two"]
    assert [message.role for message in model.requests[1].messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    assert stub.pending_count == 0
    await stream.aclose()


async def test_a_result_is_taken_once_and_only_for_a_call_that_was_made(nexus: Nexus) -> None:
    minted = await session(nexus)
    stream = cast("Any", nexus.run_agent(minted.token, run(QUESTION, RECALL)))
    frame = await next_frame(stream)
    outcome = ToolOutcome("run", frame["call_id"], True, Raw(b"[]"))

    with refused_as("INVALID_PARAMS", 409, match="not waited for"):
        await nexus.post_tool_result(minted.token, ToolOutcome("run", "call_9", True, Raw(b"1")))
    for _ in range(2):  # the same again is harmless: an answer may have been lost
        await nexus.post_tool_result(minted.token, outcome)
    other = ToolOutcome("run", frame["call_id"], True, Raw(b"[1]"))
    with refused_as("INVALID_PARAMS", 409, match="before"):
        await nexus.post_tool_result(minted.token, other)
    async for _ in stream:
        pass
    await nexus.post_tool_result(minted.token, outcome)  # the run has ended: dropped


async def test_a_host_that_never_answers_fails_the_call_and_not_the_run(
    clock: ManualClock, stub: NexusStub
) -> None:
    minted = await session(stub)
    stream = cast("Any", stub.run_agent(minted.token, run(QUESTION, RECALL)))
    await next_frame(stream)
    waiting = asyncio.ensure_future(next_frame(stream))
    await until(lambda: clock.pending_count == 1)

    clock.advance(300)
    result = await waiting

    assert result["ok"] is False
    assert result["data"]["errorCode"] == "TOOL_TIMEOUT"
    assert [frame["event"] async for frame in _decoded(stream)][-1] == "final"
    assert clock.pending_count == 0


async def _decoded(stream: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    async for raw in stream:
        yield cast("dict[str, Any]", codec.decode_any(raw))


async def test_cancelling_while_the_model_speaks_ends_with_what_it_said(
    clock: ManualClock,
) -> None:
    stub, model, token = await with_model(clock, [TextPiece("Half a ")])
    stream = cast("Any", stub.run_agent(token, run("go")))
    await next_frame(stream)
    ending = asyncio.ensure_future(next_frame(stream))
    async with asyncio.timeout(10):
        await model.reached.wait()

    assert await stub.cancel_run(token, "run") is True
    assert await stub.cancel_run(token, "run") is False
    final = await ending

    assert final["event"] == "final"
    assert (final["text"], final["cancelled"]) == ("Half a ", True)
    assert final["usage"]["outputTokens"] == 2
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert model.closed == 1
    assert await stub.cancel_run(token, "run") is False


async def test_cancelling_while_a_tool_runs_ends_the_wait(nexus: Nexus, stub: NexusStub) -> None:
    minted = await session(nexus)
    stream = cast("Any", nexus.run_agent(minted.token, run(QUESTION, RECALL)))
    await next_frame(stream)

    assert await nexus.cancel_run(minted.token, "run") is True
    final = await next_frame(stream)

    assert (final["event"], final["cancelled"]) == ("final", True)
    await stream.aclose()
    await until(lambda: stub.in_flight == stub.pending_count == 0)
    assert await nexus.cancel_run(minted.token, "no such run") is False


async def test_closing_the_iterator_ends_the_run_upstream(clock: ManualClock) -> None:
    stub, model, token = await with_model(clock, [TextPiece("a"), TextPiece("b")])
    stream = cast("Any", stub.run_agent(token, run("go")))
    await next_frame(stream)
    assert stub.in_flight == 1

    await stream.aclose()

    assert stub.in_flight == 0
    assert model.closed == 1
    assert stub.ledger.total().agent_runs == 1


async def test_a_reader_that_is_cancelled_ends_the_run(clock: ManualClock) -> None:
    stub, model, token = await with_model(clock, [TextPiece("a")])
    reading = asyncio.create_task(play(stub, token, run("go")))
    async with asyncio.timeout(10):
        await model.reached.wait()

    reading.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reading

    assert stub.in_flight == 0
    assert model.closed == 1


async def test_the_last_turn_is_offered_no_tools(clock: ManualClock) -> None:
    again = (ToolUse("notebook.recall", {"query": "x"}), END)
    stub, model, token = await with_model(clock, again, again, (TextPiece("enough"), END))

    frames = await play(stub, token, run("go", RECALL, recursion_limit=3), give_note)

    assert [len(tools) for tools in model.offered] == [1, 1, 0]
    assert events(frames).count("tool_call") == 2
    assert frames[-1]["text"] == "enough"
    assert frames[-1]["usage"] == {"inputTokens": 21, "outputTokens": 9, "totalTokens": 30}


async def test_output_tokens_of_a_run_are_bounded_over_its_turns(clock: ManualClock) -> None:
    use = ToolUse("notebook.recall", {})
    stub, model, token = await with_model(clock, (use, END), (use, END), (use, END))

    await play(stub, token, run("go", RECALL, max_tokens=5), give_note)

    assert [request.max_tokens for request in model.requests] == [5, 2]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"recursion_limit": 0}, "recursion_limit"),
        ({"recursion_limit": 33}, "recursion_limit"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 65_537}, "max_tokens"),
        ({"run_id": ""}, "run_id"),
        ({"content": " \n"}, "content"),
        ({"attachments": Raw(b"{}")}, "attachments"),
        ({"attachments": Raw(b'[{"type":"text","data":"%%"}]')}, "base64"),
        ({"model_preferences": Raw(b'{"hints":1}')}, "modelPreferences"),
    ],
)
async def test_a_run_out_of_bounds_is_refused(
    nexus: Nexus, more: dict[str, Any], named: str
) -> None:
    minted = await session(nexus)
    members: dict[str, Any] = {"run_id": "run", "content": "go", **more}
    wanted = AgentRun(**members)

    with refused_as("INVALID_PARAMS", 422, match=named):
        await play(nexus, minted.token, wanted)


async def test_attached_texts_are_read(nexus: Nexus) -> None:
    minted = await session(nexus)
    attached = Raw(b'[{"type":"text","data":"VGhlIGJvYXQgaXMgcmVkLg==","mime_type":"text/plain"}]')

    frames = await play(nexus, minted.token, run("What colour has the boat?", attachments=attached))

    assert frames[-1]["text"] == "The boat is red."


# --- Which tools ------------------------------------------------------------------------


async def test_tools_outside_the_grant_are_neither_offered_nor_called(clock: ManualClock) -> None:
    use = ToolUse("a.secret", {})
    stub, model, token = await with_model(clock, (use, END))
    stub.directory.change("ada", "brief", granted_tools=["notebook.recall"])
    secret = HostTool("a.secret", "", {})

    with refused_as("AGENT_TOOL_NOT_GRANTED"):
        await play(stub, token, run("go", RECALL, secret))

    assert [tool.name for tool in model.offered[0]] == ["notebook.recall"]
    assert stub.in_flight == 0


async def test_allowed_tools_narrow_a_run_and_cannot_widen_it(
    nexus: Nexus, stub: NexusStub
) -> None:
    minted = await session(nexus)
    frames = await play(nexus, minted.token, run(QUESTION, RECALL, allowed_tools=()))
    assert events(frames) == ["delta", "final"]
    stub.directory.change("ada", "brief", granted_tools=["a.b"])

    with refused_as("AGENT_TOOL_NOT_GRANTED", match=r"notebook\.recall"):
        await play(nexus, minted.token, run("go", RECALL, allowed_tools=("notebook.recall",)))


async def test_a_model_that_calls_outside_allowed_tools_fails_the_run(clock: ManualClock) -> None:
    stub, _, token = await with_model(clock, (ToolUse("a.b", {}), END))

    with refused_as("AGENT_TOOL_NOT_GRANTED"):
        await play(stub, token, run("go", RECALL, allowed_tools=("notebook.recall",)))


async def test_a_fixed_session_offers_its_one_tool_and_calls_it(nexus: Nexus) -> None:
    minted = await session(
        nexus, kind="fixed", agent_submode="auto", fixed_client_id="notebook.recall"
    )
    other = HostTool("notebook.remember", "", {})

    frames = await play(nexus, minted.token, run("red boats", other, RECALL), give_note)

    assert minted.granted_tools == ("notebook.recall",)
    assert frames[0]["name"] == "notebook.recall"
    assert frames[0]["args"] == {"query": "red boats"}


async def test_frames_in_another_dialect_pass_as_they_are(clock: ManualClock) -> None:
    raw = RawFrame(b'{"event":"keepalive","seq":3}')
    stub, _, token = await with_model(clock, (raw, TextPiece("hi"), END))

    frames = await play(stub, token, run("go"))

    assert frames[0] == {"event": "keepalive", "seq": 3}


# --- When the model fails ------------------------------------------------------------------


@pytest.mark.parametrize("faults", [ModelFaults(error_rate=1.0), ModelFaults(cut_after=1)])
async def test_a_provider_that_fails_ends_the_run_with_an_error(
    clock: ManualClock, faults: ModelFaults
) -> None:
    stub = NexusStub(clock=clock, models=[FaultyModel(OfflineModel(), faults)])
    minted = await session(stub)

    with refused_as("AGENT_NEXUS_ERROR", 502, match="injected"):
        await play(stub, minted.token, run("Boats float on water. Boats are long and red."))
    assert stub.in_flight == 0


async def test_a_run_that_failed_is_not_remembered(clock: ManualClock) -> None:
    stub, model, token = await with_model(clock, (ToolUse("a.b", {}), END), (TextPiece("x"), END))
    with pytest.raises(NexusError):
        await play(stub, token, run("one", allowed_tools=()))

    await play(stub, token, run("two"))

    assert [message.text for message in model.requests[1].messages] == ["two"]


async def test_a_cancelled_run_is_remembered_by_its_words_alone(clock: ManualClock) -> None:
    turns = ([TextPiece("Half"), ToolUse("a.b", {}), END], [TextPiece("x"), END])
    stub, model, token = await with_model(clock, *turns)
    stream = cast("Any", stub.run_agent(token, run("one", HostTool("a.b", "", {}))))
    await next_frame(stream)
    await next_frame(stream)
    await stub.cancel_run(token, "run")
    await next_frame(stream)
    await stream.aclose()

    await play(stub, token, run("two"))

    assert model.requests[1].messages == (
        Message(role="user", text="one"),
        Message(role="assistant", text="Half"),
        Message(role="user", text="two"),
    )


async def test_a_long_thread_forgets_its_oldest_exchanges(clock: ManualClock) -> None:
    turns = [(TextPiece(f"answer {number}"), END) for number in range(5)]
    stub, model, token = await with_model(clock, *turns, agent=StubConfig().agent)
    stub.config.agent.thread_messages = 4

    for number in range(5):
        await play(stub, token, run(f"question {number}"))

    assert [message.text for message in model.requests[4].messages] == [
        "question 2",
        "answer 2",
        "question 3",
        "answer 3",
        "question 4",
    ]


async def test_a_rogue_tool_call_of_the_provider_is_stopped(clock: ManualClock) -> None:
    rogue = FaultyModel(OfflineModel(), ModelFaults(rogue_tool="shell.run"))
    stub = NexusStub(clock=clock, models=[rogue])
    stub.directory.change("ada", "brief", granted_tools=["notebook.recall"])
    minted = await session(stub)

    with refused_as("AGENT_TOOL_NOT_GRANTED", 403, match=r"shell\.run"):
        await play(stub, minted.token, run("go", RECALL))


async def test_a_slow_provider_is_slow_by_the_clock(clock: ManualClock) -> None:
    stub = NexusStub(
        clock=clock, models=[FaultyModel(OfflineModel(), ModelFaults(latency=5.0), clock)]
    )
    minted = await session(stub)
    playing = asyncio.ensure_future(play(stub, minted.token, run("Boats.")))
    await until(lambda: clock.pending_count == 1)

    clock.advance(5.0)

    assert events(await playing) == ["delta", "final"]


async def test_a_result_that_is_no_json_is_refused_and_the_call_still_waits(
    stub: NexusStub,
) -> None:
    minted = await session(stub)
    stream = cast("Any", stub.run_agent(minted.token, run(QUESTION, RECALL)))
    frame = await next_frame(stream)

    for data in (b"nonsense", b'"\xff"', b"[" * 300 + b"]" * 300, b"1e999"):
        outcome = ToolOutcome("run", frame["call_id"], True, Raw(data))
        with refused_as("INVALID_PARAMS", 422, match="data"):
            await stub.post_tool_result(minted.token, outcome)
    assert stub.pending_count == 1
    await stream.aclose()
    assert stub.pending_count == 0
