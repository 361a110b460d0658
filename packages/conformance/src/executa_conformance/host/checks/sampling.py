"""Sampling, from the plugin to nexus and back."""

from functools import partial
from typing import Any

from executa_conformance.host.asking import ASKED, SAMPLE, open_invoke
from executa_conformance.host.book import Reply, completion
from executa_conformance.host.scene import HostScene
from executa_conformance.reading import expect, members
from executa_conformance.registry import check

host = partial(check, role="host")


@host("SAMP-101", level="sampling")
async def under_the_token_of_the_invoke(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("llm.sample",))
    await asked.get(SAMPLE, ASKED)
    seen = await scene.heard(asked.actor, "sample")
    token = asked.request.context.get("sampling_token")
    expect(seen.bearer == token, "it came under another token")
    await asked.end()


@host("SAMP-102", level="sampling")
async def the_result_is_nexuss(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("llm.sample",))
    given = completion("wetter: 21\u00b0", tokens=7)
    asked.actor.book.answers["sample"] = lambda _: Reply(given)
    got = await asked.get(SAMPLE, ASKED)
    for name, value in given.items():
        expect(got.get(name) == value, f"{name} came as {got.get(name)!r}, not {value!r}")
    await asked.end()


@host("SAMP-103", level="sampling")
async def params_that_break_the_rules(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("llm.sample",))
    message = ASKED["messages"][0]
    wrong: list[dict[str, Any]] = [
        {**ASKED, "messages": []},
        {**ASKED, "messages": [message] * 65},
        {**ASKED, "messages": [{**message, "role": "wizard"}]},
        {"messages": [message]},
    ]
    for params in wrong:
        await asked.refused(SAMPLE, params, -32004, wrong=True)
    expect(not asked.actor.book.named("sample"), "nexus was asked all the same")
    await asked.end()


@host("SAMP-104", level="sampling")
async def what_is_not_passed_on(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("llm.sample",))
    await asked.get(SAMPLE, {**ASKED, "_clientTimeoutS": 40}, wrong=True)
    seen = await scene.heard(asked.actor, "sample")
    kept = [name for name in ("context", "_clientTimeoutS") if name in members(seen.body)]
    expect(not kept, f"nexus was sent {kept}")
    await asked.end()


@host("SAMP-105", level="sampling")
async def failures_of_nexus(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("llm.sample",))
    book = asked.actor.book
    for status, code, symbol in (
        (422, -32003, "SAMPLING_PROVIDER_ERROR"),
        (429, -32002, "SAMPLING_QUOTA_EXCEEDED"),
    ):
        book.refuse("sample", status, code, symbol)
        await asked.refused(SAMPLE, ASKED, code)
    book.answers["sample"] = lambda _: Reply(b"<html>bad gateway</html>", 502)
    answer = await asked.ask(SAMPLE, ASKED)
    expect("error" in answer, f"a 502 was answered with {answer!r:.120}")
    book.answers["sample"] = lambda _: Reply(b"no json")
    answer = await asked.ask(SAMPLE, ASKED)
    expect("error" in answer, f"an unreadable answer was passed on: {answer!r:.120}")
    await asked.end()


@host("SAMP-106", level="sampling")
async def tokens_stay_where_they_belong(scene: HostScene) -> None:
    asked = await open_invoke(scene, ("llm.sample",))
    token = str(asked.request.context.get("sampling_token"))
    book = asked.actor.book
    error = {"code": -32003, "message": f"cannot use Bearer {token}"}
    book.answers["sample"] = lambda _: Reply({"error": error}, 422)
    answer = await asked.ask(SAMPLE, ASKED)
    expect(token not in str(answer), "an error told the plugin its token again")
    await asked.end()
