"""agent/complete, and what is told about agent sessions (R-33, R-37)."""

from functools import partial
from typing import Any

from executa_conformance.host.asking import (
    AGENT,
    ASKED,
    COMPLETE,
    open_invoke,
)
from executa_conformance.host.book import Reply, completion
from executa_conformance.host.scene import HostScene
from executa_conformance.reading import expect, members
from executa_conformance.registry import check

host = partial(check, role="host", level="agent")

PREFIX = "agent/session."


def of(uuid: str) -> dict[str, Any]:
    """Params that name an agent session."""
    return {"app_session_uuid": uuid}


@host("AGNT-125")
async def history_is_empty(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    uuid = await asked.create()
    got = await asked.get(PREFIX + "history", of(uuid))
    expect(got == [], f"history answered {got!r:.120}")
    await asked.end()


@host("AGNT-007")
async def history_is_an_array(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    uuid = await asked.create()
    got = await asked.get(PREFIX + "history", of(uuid))
    expect(isinstance(got, list), f"history answered {got!r:.120}")
    await asked.end()


@host("AGNT-126")
async def list_sees_ones_own(scene: HostScene) -> None:
    mine, other = await open_invoke(scene, AGENT), await open_invoke(scene, AGENT)
    own, foreign = await mine.create(), await other.create()
    answer = await mine.ask(PREFIX + "list", {})
    if "result" in answer:
        told = str(answer["result"])
        expect(own in told, f"list does not show one's own: {told:.160}")
        expect(foreign not in told, "list shows an agent session of another plugin")
    await mine.end()
    await other.end()


@host("AGNT-130")
async def complete_answers_as_sampling_does(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    given = completion("done")
    asked.actor.book.always("sample", Reply(given))
    got = members(await asked.get(COMPLETE, ASKED))
    for name in ("role", "content", "stopReason", "usage"):
        expect(got.get(name) == given[name], f"{name} came as {got.get(name)!r:.80}")
    await asked.end()


@host("AGNT-131")
async def both_ways_to_ask_for_a_completion(scene: HostScene) -> None:
    asked = await open_invoke(scene, AGENT)
    for params in (ASKED, {"prompt": "hi", "max_tokens": 16}):
        await asked.get(COMPLETE, params, wrong=True)
    await asked.end()
