"""Completions at nexus."""

from functools import partial
from typing import Any

from executa_conformance.nexus.scene import SAMPLE, NexusScene
from executa_conformance.reading import expect, members
from executa_conformance.registry import check

nexus = partial(check, role="nexus", level="sampling")


@nexus("NEXS-010")
async def a_completion(scene: NexusScene) -> None:
    answer = await scene.sample((await scene.open()).token("sampling"))
    expect(answer.status == 200, f"a completion was answered with {answer}")
    got = answer.members
    expect(got.get("role") == "assistant", f"role is {got.get('role')!r}")
    content = members(got.get("content"))
    text = content.get("type") == "text" and isinstance(content.get("text"), str)
    expect(text, f"content is {content!r:.120}")
    expect(isinstance(got.get("model"), str), f"model is {got.get('model')!r}")
    reasons = ("endTurn", "stopSequence", "maxTokens")
    expect(got.get("stopReason") in reasons, f"stopReason is {got.get('stopReason')!r}")
    usage = members(got.get("usage"))
    names = ("inputTokens", "outputTokens", "totalTokens")
    counted = all(isinstance(usage.get(name), int) for name in names)
    expect(counted, f"usage is {usage!r}")


@nexus("NEXS-011")
async def params_that_break_the_rules(scene: NexusScene) -> None:
    token = (await scene.open()).token("sampling")
    message: dict[str, Any] = SAMPLE["messages"][0]
    wrong: list[dict[str, Any]] = [
        {"messages": [], "maxTokens": 5},
        {"messages": [message] * 65, "maxTokens": 5},
        {"messages": [{**message, "role": "wizard"}], "maxTokens": 5},
        {"messages": [message]},
    ]
    for params in wrong:
        answer = await scene.sample(token, params)
        expect(answer.status >= 400, f"it was answered with {answer}")
        code = answer.error.get("code")
        expect(code == -32004, f"error.code is {code!r}")
