"""Which tools the offline model calls, with which arguments, and what it makes of the results."""

from typing import Any

import pytest

from executa_nexus_stub.models.base import (
    Message,
    ModelRequest,
    TextPiece,
    ToolSpec,
    ToolUse,
    TurnEnd,
    TurnEvent,
)
from executa_nexus_stub.models.offline import OfflineModel
from executa_nexus_stub.models.tool_rules import arguments, wanted_tools
from executa_protocol import codec


def tool(name: str, required: str = "", **properties: Any) -> ToolSpec:
    """A tool; `required` names its required parameters."""
    schema = {"type": "object", "properties": properties, "required": required.split()}
    return ToolSpec(name, "", schema)


TEXT = {"type": "string"}
RECALL = tool("notebook.recall", "query", query=TEXT)
REMEMBER = tool("notebook.remember", "text", text=TEXT)
ASK = tool("brief.ask", "question", question=TEXT)
LOOKUP = tool("maps.look_up", "q", q=TEXT)
TOOLS = [RECALL, REMEMBER, ASK, LOOKUP]


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("Use notebook.recall to find it.", ["notebook.recall"]),
        ("notebook.recall: find it", ["notebook.recall"]),
        ("First maps.look_up, then `notebook.recall`.", ["maps.look_up", "notebook.recall"]),
        ("Please recall what I wrote on boats.", ["notebook.recall"]),
        ("RECALL the boats.", ["notebook.recall"]),
        ("use remember for this", ["notebook.remember"]),
        ("Call the ask tool.", ["brief.ask"]),
        ("Look it up in my notebook.", ["notebook.recall"]),
        ("What do you find about boats in the notebook?", ["notebook.recall"]),
        ("Do you remember boats?", []),
        ("Ask yourself what recalling means.", []),
        ("See notebook.recall.v2 or xnotebook.recall.", []),
        ("Plan my week.", []),
        ("", []),
    ],
)
def test_a_tool_is_called_when_the_prompt_asks_for_it(prompt: str, names: list[str]) -> None:
    assert [use.name for use in wanted_tools(prompt, TOOLS)] == names


@pytest.mark.parametrize(
    ("prompt", "args"),
    [
        ('Use notebook.recall with "the red boat".', {"query": "the red boat"}),
        ('Use notebook.recall {"query": "a {b}", "n": 1}.', {"query": "a {b}", "n": 1}),
        ("What do my notes say on boats? Use notebook.recall.", {"query": "notes boats"}),
        ("notebook.recall {broken", {"query": "broken"}),
    ],
)
def test_a_query_is_the_quoted_phrase_or_the_key_words(prompt: str, args: dict[str, Any]) -> None:
    (use,) = wanted_tools(prompt, [RECALL])

    assert use.args == args


def test_a_text_is_what_is_left_without_the_tools_name() -> None:
    (use,) = wanted_tools("Use notebook.remember: the boat is red", [REMEMBER])

    assert use.args == {"text": "the boat is red"}


def test_every_required_parameter_gets_a_value_of_its_type() -> None:
    everything = tool(
        "a.b",
        "query count size deep mode tags spec fixed start gone",
        query=TEXT,
        count={"type": "integer", "minimum": 1, "maximum": 5},
        size={"type": "number"},
        deep={"type": "boolean"},
        mode={"enum": ["fast", "slow"]},
        tags={"type": "array", "items": TEXT},
        spec={"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        fixed={"const": "yes"},
        start={"type": "integer", "default": 9},
        gone={"type": ["null", "null"]},
        optional=TEXT,
    )

    assert arguments(everything, "find 'a boat' in slow mode, 7 of 2.5 metres") == {
        "query": "a boat",
        "count": 5,
        "size": 2.5,
        "deep": False,
        "mode": "slow",
        "tags": ["a boat"],
        "spec": {"x": 1},
        "fixed": "yes",
        "start": 9,
        "gone": None,
    }


def test_an_optional_query_is_filled_and_other_optional_parameters_are_not() -> None:
    searching = tool("a.search", "", query=TEXT, limit={"type": "integer"})

    assert arguments(searching, "find boats") == {"query": "boats"}
    assert arguments(tool("a.now", ""), "what time is it") == {}


async def turn(*messages: Message, tools: list[ToolSpec], **more: Any) -> list[TurnEvent]:
    """The events of one turn."""
    request = ModelRequest(messages=messages, max_tokens=400, **more)
    return [event async for event in OfflineModel().turn(request, tools)]


def exchange(data: Any, *, ok: bool = True, name: str = "notebook.recall") -> tuple[Message, ...]:
    """A question, a call and its result."""
    return (
        Message(role="user", text="What do notes say on boats? Use notebook.recall."),
        Message(role="assistant", calls=(ToolUse(name, {"query": "boats"}, "c1"),)),
        Message(role="tool", text=codec.encode(data).decode(), call_id="c1", ok=ok),
    )


def text_of(events: list[TurnEvent]) -> str:
    """The text of a turn that called nothing."""
    assert not any(isinstance(event, ToolUse) for event in events)
    assert isinstance(events[-1], TurnEnd)
    return "".join(event.text for event in events if isinstance(event, TextPiece))


@pytest.mark.parametrize(
    ("data", "ok", "said"),
    [
        (
            {"matches": [{"id": "n1", "text": "The boat is red"}, {"id": "n2", "text": "Milk"}]},
            True,
            "From notebook.recall: The boat is red.",
        ),
        (["Tea.", "Milk"], True, "From notebook.recall: Tea. Milk."),
        ({"matches": [], "count": 0}, True, "notebook.recall found nothing."),
        ({"count": 3}, True, 'notebook.recall: {"count":3}.'),
        ({"error": "no disk"}, False, "notebook.recall failed: no disk."),
        ({"errorCode": "APPROVAL_REQUIRED"}, False, "notebook.recall failed: APPROVAL_REQUIRED."),
        (None, False, "notebook.recall failed: no reason given."),
    ],
)
async def test_the_answer_is_made_of_what_the_tool_gave(data: Any, ok: bool, said: str) -> None:
    assert text_of(await turn(*exchange(data, ok=ok), tools=TOOLS)) == said


async def test_a_tool_is_called_once_a_run_and_again_in_the_next() -> None:
    first = exchange(["Boats."])
    again = Message(role="user", text="Once more: notebook.recall on boats.")

    assert text_of(await turn(*first, tools=TOOLS))
    second = await turn(*first, again, tools=TOOLS)
    assert [type(event) for event in second] == [ToolUse, TurnEnd]


async def test_a_fixed_session_calls_its_tool_without_being_told() -> None:
    asked = Message(role="user", text="boats and harbours")

    events = await turn(asked, tools=[RECALL], tool_choice="required")

    assert events[0] == ToolUse("notebook.recall", {"query": "boats harbours"})


async def test_an_answer_comes_in_several_pieces() -> None:
    events = await turn(*exchange(["Boats are long and narrow and float on water."]), tools=TOOLS)

    assert sum(isinstance(event, TextPiece) for event in events) > 1


async def test_what_the_prompt_brought_is_answered_from_as_well() -> None:
    asked = Message(
        role="user",
        text='Look up "What colour is the boat?" with the tool notebook.recall, then answer it '
        "from the result and from this summary:\n\nThe boat is green. Tea is hot.",
    )
    calls = await turn(asked, tools=TOOLS)
    use = calls[0]
    assert isinstance(use, ToolUse)
    call = Message(role="assistant", calls=(ToolUse(use.name, use.args, "c1"),))
    nothing = Message(role="tool", text='{"matches":[]}', call_id="c1")

    said = text_of(await turn(asked, call, nothing, tools=TOOLS))

    assert use.args == {"query": "What colour is the boat?"}
    assert said == "notebook.recall found nothing. The boat is green."
