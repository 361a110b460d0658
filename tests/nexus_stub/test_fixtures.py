"""The fixture model: the field's mock format replayed, and recorded into."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from executa_nexus_stub import NexusStub, create
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.models.base import Model, ModelInfo
from executa_nexus_stub.models.fixture import FixtureModel, read_fixtures
from executa_nexus_stub.models.offline import OfflineModel
from executa_nexus_stub.models.recording import RecordingModel
from executa_protocol.errors import UsageError
from executa_protocol.methods.response_format import JsonObjectFormat
from tests.nexus_stub.calls import RECALL, ask, events, play, run, session, tokens

LINES = r"""
# comments and blank lines mean nothing

{"ns":"sampling","method":"createMessage","match":{"contentIncludes":"Boat"},"result":"A boat."}
{"ns":"sampling","method":"createMessage","match":{"modeEquals":"json_object"},"result":"{\"a\":1}"}
{"ns":"sampling","method":"createMessage","match":{"tool_id":"tool-other"},"result":"Not for you."}
{"ns":"sampling","method":"createMessage","match":{"promptIncludes":"full"},"result":{"content":{"type":"text","text":"Full."},"stopReason":"maxTokens","usage":{"inputTokens":3,"outputTokens":4}}}
{"ns":"agent","method":"session.run","match":{"promptIncludes":"notes"},"events":[{"payload":{"event":"delta","text":"Let me see. "}},{"payload":{"event":"tool_call","name":"notebook.recall","call_id":"x","args":{"query":"boats"}}},{"payload":{"event":"tool_result","call_id":"x","ok":true,"data":["old"]}},{"payload":{"event":"delta","text":"Red."}},{"payload":{"event":"final","text":"ignored"}}]}
{"ns":"agent","method":"session.run","match":{"promptIncludes":"final only"},"result":{"events":[{"payload":{"event":"run_meta","model":"m"}},{"payload":{"event":"final","text":"All at once."}}]}}
""".strip().splitlines()  # noqa: E501 - one line is one entry


@pytest.fixture
def fixture_stub(clock: ManualClock) -> NexusStub:
    """A stub that answers from `LINES`."""
    return NexusStub(clock=clock, models=[FixtureModel(read_fixtures(LINES))])


@pytest.mark.parametrize(
    ("text", "more", "answer"),
    [
        ("Boats float", {}, "A boat."),
        ("boats float", {}, "[no fixture matched] boats float"),
        ("an object", {"response_format": JsonObjectFormat()}, '{"a":1}'),
        ("the full one", {}, "Full."),
    ],
)
async def test_the_first_entry_that_matches_answers(
    fixture_stub: NexusStub, text: str, more: dict[str, Any], answer: str
) -> None:
    sampling, _ = await tokens(fixture_stub)

    result = await fixture_stub.sample(sampling, ask(text, **more))

    assert result.content.text == answer


async def test_a_recorded_result_keeps_its_reason_and_usage(fixture_stub: NexusStub) -> None:
    sampling, _ = await tokens(fixture_stub)

    result = await fixture_stub.sample(sampling, ask("the full one"))

    assert result.stop_reason == "maxTokens"
    assert result.usage
    assert (result.usage.input_tokens, result.usage.output_tokens) == (3, 4)


async def test_a_recorded_call_goes_to_a_host_that_offers_the_tool(
    fixture_stub: NexusStub,
) -> None:
    minted = await session(fixture_stub)

    frames = await play(
        fixture_stub, minted.token, run("my notes", RECALL), lambda _: (True, ["new"])
    )

    assert events(frames) == ["delta", "tool_call", "tool_result", "delta", "final"]
    assert frames[1]["args"] == {"query": "boats"}
    assert frames[2]["data"] == ["new"]
    assert frames[-1]["text"] == "Let me see. Red."


async def test_without_that_tool_the_recorded_frames_are_played_as_they_are(
    fixture_stub: NexusStub,
) -> None:
    minted = await session(fixture_stub)

    frames = await play(fixture_stub, minted.token, run("my notes"))

    assert events(frames) == ["delta", "tool_call", "tool_result", "delta", "final"]
    assert frames[2]["data"] == ["old"]
    assert "executor" not in frames[1]


async def test_other_dialects_pass_and_a_lone_final_gives_the_text(
    fixture_stub: NexusStub,
) -> None:
    minted = await session(fixture_stub)

    frames = await play(fixture_stub, minted.token, run("final only"))

    assert events(frames) == ["run_meta", "delta", "final"]
    assert frames[-1]["text"] == "All at once."


async def test_a_run_that_no_entry_matches_says_so(fixture_stub: NexusStub) -> None:
    minted = await session(fixture_stub)

    frames = await play(fixture_stub, minted.token, run("else"))

    assert frames[-1]["text"] == "[no fixture matched] else"


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"ns":"sampling"}', '{"ns":"a","method":"b","match":{"regex":"x"}}']
)
def test_a_line_that_cannot_be_read_is_named(line: str) -> None:
    with pytest.raises(UsageError, match="line 2"):
        read_fixtures(["# fine", line])


async def answers(clock: ManualClock, models: Sequence[Model]) -> list[Any]:
    """What two calls and a run with a tool give."""
    stub = NexusStub(clock=clock, models=models)
    sampling, _ = await tokens(stub)
    said = [(await stub.sample(sampling, ask(text))).content.text for text in ("One.", "Two.")]
    minted = await session(stub)
    wanted = run("Boats? Use notebook.recall.", RECALL)
    frames = await play(stub, minted.token, wanted, lambda _: (True, ["Red."]))
    return [*said, *(frame for frame in frames if frame["event"] != "final"), frames[-1]["text"]]


async def test_what_was_recorded_is_what_is_replayed(clock: ManualClock, tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    original = await answers(clock, [RecordingModel(OfflineModel(), path)])

    replayed = await answers(clock, [FixtureModel.from_file(path, ModelInfo(name="again"))])

    assert replayed == original


async def test_models_are_built_from_the_configuration(clock: ManualClock, tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("\n".join(LINES), encoding="utf-8")
    model = {"name": "f", "kind": "fixture", "path": str(source), "record": str(target)}
    stub = create({"models": [model]})
    sampling, _ = await tokens(stub)

    assert (await stub.sample(sampling, ask("Boat"))).content.text == "A boat."
    assert "A boat." in target.read_text(encoding="utf-8")
