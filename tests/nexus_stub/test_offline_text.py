"""The offline model on text: it picks sentences, and always the same ones."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executa_nexus_stub.models.base import Completion, Message, ModelRequest
from executa_nexus_stub.models.estimate import count_tokens, cut_to_tokens, pieces
from executa_nexus_stub.models.extract import NOTHING
from executa_nexus_stub.models.offline import OfflineModel
from executa_nexus_stub.models.text import sentences

HERONS = """\
Herons are wading birds. They stand still in shallow water for a long time. A heron catches
fish with its long bill. Most herons nest in colonies, which are called heronries. Some people
fly kites. Herons eat fish, frogs and insects. The weather was fine on Tuesday. The grey heron
is the largest heron in Europe. Tea is served at five.
"""


async def complete(
    text: str, *, system: str = "", earlier: tuple[Message, ...] = (), **more: object
) -> Completion:
    """What the model says to one user message."""
    request = ModelRequest(
        messages=(*earlier, Message(role="user", text=text)),
        max_tokens=int(str(more.pop("max_tokens", 400))),
        system=system,
        **more,  # type: ignore[arg-type]
    )
    return await OfflineModel().complete(request)


async def test_a_summary_is_made_of_the_texts_own_sentences_in_their_order() -> None:
    answer = await complete("Summarize the following text:\n\n" + HERONS)

    picked = sentences(answer.text)
    original = sentences(HERONS)
    assert 1 < len(picked) < len(original)
    assert picked == [part for part in original if part in picked]
    assert "Tea" not in answer.text
    assert answer.stop == "endTurn"


@pytest.mark.parametrize(
    ("order", "count"),
    [("in two sentences", 2), ("in 1 sentence", 1), ("as 4 bullet points", 4)],
)
async def test_a_summary_has_as_many_sentences_as_were_asked_for(order: str, count: int) -> None:
    answer = await complete(f"Summarize {order}:\n\n{HERONS}")

    assert len(sentences(answer.text)) == count


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What are the colonies of herons called?", "which are called heronries"),
        ("Which heron is the largest?", "The grey heron is the largest"),
        ("When is tea served?", "Tea is served at five."),
    ],
)
@pytest.mark.parametrize("form", ["{q}\n\n{t}", "{t}\n\n{q}", "<text>\n{t}</text>\n{q}"])
async def test_a_question_is_answered_by_the_sentences_that_meet_it(
    form: str, question: str, answer: str
) -> None:
    said = await complete(form.format(q=question, t=HERONS))

    assert answer in said.text
    assert "kites" not in said.text


async def test_a_question_without_any_text_to_answer_from_is_not_answered() -> None:
    assert (await complete("Who was it?")).text == NOTHING
    assert (await complete("Who paints cathedrals?\n\n" + HERONS)).text == NOTHING


async def test_a_question_may_be_about_what_was_said_before() -> None:
    before = (
        Message(role="user", text="My boat is called Petrel. I bought it in May."),
        Message(role="assistant", text="Noted."),
    )

    assert (await complete("What is my boat called?", earlier=before)).text == (
        "My boat is called Petrel."
    )


async def test_a_bare_text_is_worked_on_as_the_system_prompt_says() -> None:
    answer = await complete(HERONS, system="Summarize what the user sends in one sentence.")

    assert answer.text in " ".join(sentences(HERONS))
    assert len(sentences(answer.text)) == 1


async def test_the_answer_keeps_to_its_tokens_and_says_when_it_was_cut() -> None:
    for limit in (1, 3, 8, 20, 60):
        answer = await complete("Summarize:\n\n" + HERONS, max_tokens=limit)
        assert 1 <= count_tokens(answer.text) <= limit
        assert answer.usage.output_tokens == count_tokens(answer.text)
    cut = await complete("Summarize:\n\n" + HERONS, max_tokens=3)
    assert cut.stop == "maxTokens"


async def test_a_stop_sequence_ends_the_answer_before_it() -> None:
    whole = await complete("Summarize:\n\n" + HERONS)
    stopped = await complete("Summarize:\n\n" + HERONS, stop=("never", "heron"))

    assert whole.text.startswith(stopped.text)
    assert "heron" not in stopped.text
    assert stopped.stop == "stopSequence"


async def test_the_same_input_gives_the_same_answer() -> None:
    answers = {str(await complete("Summarize:\n\n" + HERONS)) for _ in range(5)}

    assert len(answers) == 1


@settings(deadline=None)
@given(st.text(max_size=400))
async def test_any_text_at_all_is_answered(text: str) -> None:
    answer = await complete(text, max_tokens=50)

    assert count_tokens(answer.text) == answer.usage.output_tokens <= 50


@pytest.mark.parametrize(
    "piece",
    ["[", "<", "```\n", "*a", "![x](", "<text>", "| ", '"', "- a\n", "A. ", "a b. ", "recall {"],
)
async def test_no_text_takes_forever(piece: str) -> None:
    # Quadratic work on this would take minutes; the suite's own patience is the bound.
    for text in (piece * 50_000, f"Summarize:\n\n{piece * 50_000}\n\nWhat is it?"):
        assert (await complete(text)).stop in ("endTurn", "maxTokens")


def test_markdown_is_read_as_prose() -> None:
    document = (
        "---\ntitle: x\n---\n# Heading\n\nA **bold** [link](http://x) and `code`.\nIt goes on, "
        "e.g. here. Dr. Who came.\n\n```python\nprint('no')\n```\n<!-- no -->\n- an item\n"
        "1. another\n\n| a | b |\n|---|---|\n| c | d |\n> quoted text.\n"
    )

    assert sentences(document) == [
        "A bold link and code.",
        "It goes on, e.g. here.",
        "Dr. Who came.",
        "an item",
        "another",
        "a | b",
        "c | d",
        "quoted text.",
    ]
    assert sentences("# Only\n## Headings") == ["Only", "Headings"]


def test_text_that_needs_no_spaces_between_sentences_is_split() -> None:
    assert sentences("\u9ed2\u3044\u3002\u767d\u3044\u3002") == [
        "\u9ed2\u3044\u3002",
        "\u767d\u3044\u3002",
    ]


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(0, 60))
def test_counting_and_cutting_agree(text: str, limit: int) -> None:
    short = cut_to_tokens(text, limit)

    assert text.startswith(short)
    assert count_tokens(short) == min(limit, count_tokens(text))


@settings(deadline=None)
@given(st.text(max_size=300))
def test_pieces_join_to_the_text_and_their_tokens_add_up(text: str) -> None:
    parts = list(pieces(text))

    assert "".join(parts) == text
    assert sum(map(count_tokens, parts)) == count_tokens(text)


async def test_the_repositorys_own_readme_is_summarized() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")

    answer = await complete("Summarize in two sentences:\n\n" + readme)

    assert len(sentences(answer.text)) == 2
    assert "```" not in answer.text
