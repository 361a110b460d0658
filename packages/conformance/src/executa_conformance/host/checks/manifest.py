"""What a host makes of the answer to describe (R-03, R-29)."""

from functools import partial
from typing import Any

from executa_conformance.host.adapter import HostFailure
from executa_conformance.host.parts import TOOL, described, manifest_of
from executa_conformance.host.scene import HostScene
from executa_conformance.reading import code_of, expect
from executa_conformance.registry import check

host = partial(check, role="host")

GET = {"key": "k", "scope": "user"}


async def opens(scene: HostScene, capabilities: Any, method: str, params: Any) -> bool:
    """Whether a plugin that declares this is served a reverse call."""
    actor = await scene.plugin(manifest=manifest_of(host_capabilities=capabilities))
    command, request = await scene.begin(actor)
    answer = await actor.life.ask(method, params, under=request)
    actor.life.result(request)
    await scene.outcome(command)
    return "result" in answer


@host("MANI-104", level="storage")
async def words_that_are_no_capabilities(scene: HostScene) -> None:
    for word in ("storage.user", "storage.app", "storage.tool"):
        actor = scene.cast(manifest=manifest_of(host_capabilities=[word]))
        try:
            await scene.answered(scene.starting(actor), scene.patience.start)
        except HostFailure as fault:
            hinted = "aps" in fault.message
            expect(hinted, f"{word} is refused without a hint: {fault.message}")
            continue
        _, request = await scene.begin(actor)
        answer = await actor.life.ask("storage/get", GET, under=request)
        code = code_of(answer)
        expect(code == -32021, f"{word} unlocked storage: {answer!r:.160}")


@host("MANI-105", level="storage")
async def what_unlocks_storage(scene: HostScene) -> None:
    for words in (["aps.kv"], ["aps.scope.user.read"], ["aps.scope.tool.write"]):
        expect(await opens(scene, words, "storage/get", GET), f"{words} did not unlock storage/get")
    for words in (["aps.files"],):
        opened = await opens(scene, words, "files/list", {"scope": "user"})
        expect(opened, f"{words} did not unlock files/list")


@host("MANI-106", level="storage")
async def bare_aps_is_both(scene: HostScene) -> None:
    expect(await opens(scene, ["aps"], "storage/get", GET), "aps did not unlock storage/get")
    expect(
        await opens(scene, ["aps"], "files/list", {"scope": "user"}),
        "aps did not unlock files/list",
    )


@host("MANI-107")
async def tolerated_spellings(scene: HostScene) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    spellings: dict[str, Any] = {
        "hostCapabilities": {**manifest_of(), "hostCapabilities": ["llm.sample"]},
        "capabilities as an object": manifest_of(host_capabilities={"llm.sample": True}),
        "parameters as a JSON Schema": manifest_of(tools=[{**TOOL, "parameters": schema}]),
        "the manifest under manifest": {"manifest": manifest_of()},
        "no name": {name: value for name, value in manifest_of().items() if name != "name"},
    }
    for spelling, manifest in spellings.items():
        scene.evidence.tell(spelling)
        actor = await scene.plugin(manifest=manifest)
        command, request = await scene.begin(actor, {"text": "hi"})
        actor.life.result(request, spelling)
        outcome = await scene.outcome(command)
        expect(outcome.data == spelling, f"with {spelling} the invoke gave {outcome.data!r:.80}")


@host("MANI-108")
async def no_manifest(scene: HostScene) -> None:
    for answer in ("text", 7, {"tools": "none"}, {"name": "scripted", "tools": [{"name": 5}]}):
        actor = scene.cast(handlers={"describe": described(answer)})
        fault = await scene.failure(scene.starting(actor), scene.patience.start)
        expect(bool(fault.message), f"the failure to start with {answer!r} has no words")


@host("MANI-110")
async def an_unknown_capability(scene: HostScene) -> None:
    actor = await scene.plugin(manifest=manifest_of(host_capabilities=["kit.unheard.of"]))
    await scene.works(actor)
