"""The example plugins do what they say, on good input and on bad."""

import asyncio
from pathlib import Path

import pytest

from executa_host import Host
from executa_protocol.errors import RpcError


async def test_the_notebook_finds_what_it_remembers_best_match_first(host: Host) -> None:
    for text in ("Tea at four with Ada", "Ada likes green tea", "The car needs oil"):
        assert (await host.invoke("notebook", "remember", {"text": text})).success
    outcome = await host.invoke("notebook", "recall", {"query": "green tea for Ada?"})
    assert outcome.data == ["Ada likes green tea", "Tea at four with Ada"]


async def test_no_match_is_a_success_with_an_empty_list(host: Host) -> None:
    outcome = await host.invoke("notebook", "recall", {"query": "x"})
    assert outcome.success
    assert outcome.data == []


async def test_notes_that_are_remembered_at_once_are_all_kept(host: Host) -> None:
    texts = [f"remark number {number}" for number in range(20)]
    await asyncio.gather(*(host.invoke("notebook", "remember", {"text": text}) for text in texts))
    outcome = await host.invoke("notebook", "remember", {"text": texts[0]})
    assert outcome.data == {"remembered": texts[0], "notes": 20}


@pytest.mark.parametrize("text", ["", " \n\t ", "x" * 2001])
async def test_a_note_that_cannot_be_kept_is_a_failure_in_words(host: Host, text: str) -> None:
    outcome = await host.invoke("notebook", "remember", {"text": text})
    assert not outcome.success
    assert outcome.error


async def test_a_missing_argument_is_refused_by_its_name(host: Host) -> None:
    with pytest.raises(RpcError, match="text") as refused:
        await host.invoke("notebook", "remember", {})
    assert refused.value.code == -32602


@pytest.mark.parametrize("length", [1, 3_999, 4_001, 30_000, 2_000_000])
async def test_a_brief_takes_at_most_six_pieces_whatever_the_length(
    host: Host, tmp_path: Path, length: int
) -> None:
    sentence = "The river rises in the hills and falls into the sea.\n\n"
    file = tmp_path / "river.txt"
    file.write_text((sentence * (length // len(sentence) + 1))[:length], encoding="utf-8")
    question = "Where does the river rise?"
    outcome = await host.invoke("brief", "brief", {"path": str(file), "question": question})
    assert outcome.success, outcome.error
    assert 1 <= outcome.data["pieces"] <= 6
    assert outcome.ledger.sampling_calls == outcome.data["pieces"]
    assert outcome.data["summary"]


async def test_a_brief_asks_the_notebook_and_answers_from_it(host: Host, tmp_path: Path) -> None:
    await host.invoke("notebook", "remember", {"text": "The river is called Alph."})
    file = tmp_path / "river.txt"
    file.write_text("A river runs through caverns. It is cold.", encoding="utf-8")
    arguments = {"path": str(file), "question": "What is the river called?"}
    outcome = await host.invoke("brief", "brief", arguments)
    assert outcome.data["tools_called"] == ["notebook.recall"]
    assert "Alph" in outcome.data["answer"]
    assert outcome.ledger.nested_calls == 1
    assert outcome.ledger.storage_calls == 1
    assert outcome.ledger.frames == outcome.data["frames"]


@pytest.mark.parametrize("content", [None, b"", b" \n"])
async def test_a_file_that_cannot_be_briefed_is_a_failure_in_words(
    host: Host, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "void.txt"
    if content is not None:
        file.write_bytes(content)
    outcome = await host.invoke("brief", "brief", {"path": str(file), "question": "What?"})
    assert not outcome.success
    assert "void.txt" in outcome.error


async def test_bytes_that_are_no_text_are_briefed_all_the_same(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "bytes.bin"
    file.write_bytes(bytes(range(256)) * 40)
    outcome = await host.invoke("brief", "brief", {"path": str(file), "question": "What?"})
    assert outcome.success, outcome.error


async def test_the_gist_comes_from_the_text(host: Host) -> None:
    outcome = await host.invoke("brief", "gist", {"text": "Bread is made of flour and water."})
    assert "flour" in outcome.data


async def test_what_is_not_declared_is_refused_with_what_is_missing(host: Host) -> None:
    outcome = await host.invoke("brief", "overreach")
    assert outcome.data == {
        "refused": True,
        "code": -32021,
        "missing": {"step": "manifest", "needs": ["aps.kv"]},
    }
