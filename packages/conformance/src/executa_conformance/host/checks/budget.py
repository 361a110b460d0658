"""What one root invoke may use (R-35)."""

from functools import partial
from typing import Any

from executa_conformance.host.asking import (
    AGENT,
    ASKED,
    COMPLETE,
    GET,
    RUN,
    SAMPLE,
    Open,
    open_invoke,
    run_of,
    with_book,
)
from executa_conformance.host.book import Reply, completion
from executa_conformance.host.scene import HostScene
from executa_conformance.reading import code_of, expect
from executa_conformance.registry import check

host = partial(check, role="host")


def asking(tokens: int) -> dict[str, Any]:
    """Params of a sampling call for so many tokens."""
    return {**ASKED, "maxTokens": tokens}


@host("BUDG-001", level="sampling")
async def calls_of_an_invoke(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("llm.sample",))
    for _ in range(8):
        await asked.get(SAMPLE, ASKED)
    await asked.refused(SAMPLE, ASKED, -32006)
    await asked.end()


@host("BUDG-002", level="sampling")
async def tokens_of_a_call(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("llm.sample",))
    await asked.get(SAMPLE, asking(8192))
    answer = await asked.ask(SAMPLE, asking(8193), wrong=True)
    code = code_of(answer)
    expect(code in (-32007, -32004), f"8,193 tokens in one call: expected -32007, got {code}")
    await asked.end()
    asked = await with_book(scene, ("llm.sample",), caps={"tokens_per_call": 100})
    await asked.refused(SAMPLE, asking(101), -32007)
    await asked.end()


@host("BUDG-003", level="sampling")
async def tokens_of_an_invoke(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("llm.sample",))
    asked.actor.book.answers["sample"] = lambda _: Reply(completion(tokens=8000))
    for _ in range(4):
        await asked.get(SAMPLE, asking(8000))
    await asked.refused(SAMPLE, asking(1), -32007)
    await asked.end()


@host("BUDG-004", level="storage", patience=2)
async def storage_calls_of_an_invoke(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("aps.kv",))
    life = asked.actor.life
    made = [life.call("storage/get", GET, under=asked.request) for _ in range(200)]
    for identity in made:
        answer = await life.reply(identity)
        expect("result" in answer, f"one of 200 calls was refused: {answer!r:.160}")
    await asked.refused("storage/get", GET, -32026)
    await asked.end()


@host("BUDG-005", level="agent")
async def one_budget_for_all_chapters(scene: HostScene) -> None:
    asked = await with_book(scene, AGENT, caps={"sampling_calls": 3})
    uuid = await asked.create()
    await asked.get(SAMPLE, ASKED)
    await asked.get(COMPLETE, ASKED)
    await asked.get(RUN, run_of(uuid))
    for method, params in ((SAMPLE, ASKED), (COMPLETE, ASKED), (RUN, run_of(uuid))):
        await asked.refused(method, params, -32006)
    await asked.end()


@host("BUDG-006", level="sampling")
async def the_grants_own_caps(scene: HostScene) -> None:
    asked = await with_book(scene, ("llm.sample",), caps={"sampling_calls": 1})
    await asked.get(SAMPLE, ASKED)
    await asked.refused(SAMPLE, ASKED, -32006)
    await asked.end()


@host("BUDG-007", level="sampling")
async def a_failed_call_gives_its_tokens_back(scene: HostScene) -> None:
    asked = await with_book(scene, ("llm.sample",), caps={"tokens": 100})
    book = asked.actor.book
    book.refuse("sample", 422, -32003, "SAMPLING_PROVIDER_ERROR")
    answer = await asked.ask(SAMPLE, asking(100))
    expect("error" in answer, "a failure of nexus was answered as a result")
    del book.answers["sample"]
    await asked.get(SAMPLE, asking(100))
    await asked.end()


@host("BUDG-008", level="sampling")
async def the_next_invoke_begins_anew(scene: HostScene) -> None:
    asked = await with_book(scene, ("llm.sample",), caps={"sampling_calls": 1})
    await asked.get(SAMPLE, ASKED)
    await asked.refused(SAMPLE, ASKED, -32006)
    await asked.refused(SAMPLE, ASKED, -32006)
    await asked.end()
    again: Open = await open_invoke(scene, (), asked.actor)
    await again.get(SAMPLE, ASKED)
    await again.end()
