"""How a host begins: initialize, and the fallback to 1.1 (seed lifecycle; R-20, R-21, R-23)."""

from functools import partial
from typing import Any

from executa_conformance.host.actor import Actor
from executa_conformance.host.asking import ASKED, AUTO, CREATE, GET, SAMPLE
from executa_conformance.host.life import Handler, Life, Request
from executa_conformance.host.parts import error, handshake, manifest_of, silence
from executa_conformance.host.scene import HostScene
from executa_conformance.reading import code_of, expect, members
from executa_conformance.registry import check

host = partial(check, role="host")


async def offered(scene: HostScene) -> Request:
    """The host's initialize. Raises `NotMet` if it sends none."""
    actor = await scene.plugin()
    found = [one for one in actor.life.requests if one.method == "initialize"]
    expect(bool(found), "the host sends no initialize")
    return found[0]


async def falls_back(scene: HostScene, handler: Handler, seconds: float = 0.0) -> Actor:
    """A plugin that answers initialize like this is described and invoked all the same, as 1.1."""
    actor = scene.cast(handlers={"initialize": handler}, capabilities=("llm.sample",))
    scene.waits(seconds)
    await scene.start(actor)
    if actor.protocol:
        text = f"the host says that it speaks {actor.protocol}, not 1.1"
        expect(actor.protocol.startswith("1."), text)
    command, request = await scene.begin(actor)
    tokens = [name for name in request.context if name.endswith("_token")]
    expect(not tokens, f"an invoke of a plugin on 1.1 carries {tokens}")
    actor.life.result(request, "old")
    expect((await scene.outcome(command)).data == "old", "the invoke was not completed")
    return actor


@host("HAND-101")
async def initialize_comes_first(scene: HostScene) -> None:
    def late(life: Life, request: Request) -> None:
        held.append((life, request))

    held: list[tuple[Life, Request]] = []
    actor = scene.cast(handlers={"initialize": late})
    starting = scene.starting(actor)
    await actor.process(1, scene.patience.answer)
    await actor.life.until(lambda: bool(held), "request that is initialize came")
    await scene.pause(min(scene.patience.quiet, scene.around.pace("initialize") / 4))
    asked = [one.method for one in actor.life.requests]
    expect(asked == ["initialize"], f"before its answer the plugin was sent {asked}")
    handshake()(*held[0])
    await scene.answered(starting)


@host("HAND-102")
async def initialize_says_who_and_what(scene: HostScene) -> None:
    params = (await offered(scene)).params
    expect(isinstance(params.get("protocolVersion"), str), "protocolVersion is missing")
    client = members(params.get("clientInfo"))
    both = all(isinstance(client.get(name), str) for name in ("name", "version"))
    expect(both, f"clientInfo is {client!r}, not a name and a version")
    expect(isinstance(params.get("capabilities"), dict), "capabilities is no object")


@host("HAND-009")
async def initialize_has_the_version_and_the_id(scene: HostScene) -> None:
    request = await offered(scene)
    version = request.params.get("protocolVersion")
    expect(version == "2.0", f"protocolVersion is {version!r}")
    expect(repr(request.id) == "0", f"the id is {request.id!r}, not 0")


@host("HAND-103", level="sampling")
async def the_offer_of_sampling(scene: HostScene) -> None:
    offer = members(members((await offered(scene)).params["capabilities"]).get("sampling"))
    names = ("modalities", "maxTokensPerCall", "maxCallsPerInvoke", "responseFormat")
    missing = [name for name in names if name not in offer]
    expect(not missing, f"the offer of sampling lacks {missing}")


@host("HAND-104", level="agent")
async def the_offers_of_v2_1(scene: HostScene) -> None:
    params = (await offered(scene)).params
    offer = members(params["capabilities"])
    modes = members(offer.get("agent")).get("submodes")
    expect(modes == ["auto"], f"capabilities.agent.submodes is {modes!r}")
    missing = [name for name in ("storage", "cancellation", "progress") if name not in offer]
    expect(not missing, f"the offer lacks {missing}")
    version = params.get("protocolVersion")
    expect(version == "2.0", f"they are offered under protocolVersion {version!r}")


@host("FILE-001")
async def the_offer_of_file_transport(scene: HostScene) -> None:
    offer = (await offered(scene)).params["capabilities"]
    expect(offer.get("fileTransport") is True, "fileTransport is not offered")


@host("HAND-105", level="v2")
async def both_versions_are_v2(scene: HostScene) -> None:
    for version in ("2.0", "2.1"):
        actor = await scene.plugin(
            capabilities=("llm.sample",),
            handlers={"initialize": handshake(protocolVersion=version)},
        )
        _, request = await scene.begin(actor)
        token = request.context.get("sampling_token")
        expect(bool(token), f"a plugin that answered {version} was given no sampling_token")
        actor.life.result(request)


@host("HAND-106")
async def method_not_found_falls_back(scene: HostScene) -> None:
    await falls_back(scene, error(-32601))


@host("HAND-107")
async def any_other_error_falls_back(scene: HostScene) -> None:
    for code in (-32603, -32000, 5):
        await falls_back(scene, error(code))


@host("HAND-108")
async def silence_falls_back(scene: HostScene) -> None:
    await falls_back(scene, silence, scene.around.pace("initialize"))


@host("HAND-109")
async def another_version_falls_back(scene: HostScene) -> None:
    for version in ("1.1", "3.0"):
        await falls_back(scene, handshake(protocolVersion=version))


@host("HAND-110")
async def a_late_answer_changes_nothing(scene: HostScene) -> None:
    actor = await falls_back(scene, silence, scene.around.pace("initialize"))
    life = actor.life
    handshake(protocolVersion="2.0")(life, life.requests[0])
    _, request = await scene.begin(actor)
    answer = await life.ask(SAMPLE, ASKED, under=request)
    expect("error" in answer, "a late answer to initialize brought back v2")
    life.result(request)


@host("HAND-112")
async def a_plugin_on_1_1_is_run(scene: HostScene) -> None:
    actor = await falls_back(scene, error(-32601))
    asked = [one.method for one in actor.life.requests]
    expect("describe" in asked, f"the plugin was sent {asked}, and no describe")


@host("HAND-113")
async def a_plugin_on_1_1_gets_no_reverse_calls(scene: HostScene) -> None:
    declared = ("llm.sample", "llm.agent.auto", "aps.kv", "aps.files")
    actor = await scene.plugin(handlers={"initialize": error(-32601)}, capabilities=declared)
    _, request = await scene.begin(actor)
    for method, params, code in (
        (SAMPLE, ASKED, -32008),
        (CREATE, AUTO, -32041),
        ("storage/get", GET, -32021),
        ("files/list", {"scope": "user"}, -32021),
    ):
        answer = await actor.life.ask(method, params, under=request)
        got = code_of(answer)
        expect(got == code, f"{method} was answered with {got}, not {code}")
    actor.life.result(request)


@host("HAND-114", level="sampling")
async def a_plugin_on_1_1_gets_no_tokens(scene: HostScene) -> None:
    await falls_back(scene, error(-32601))


@host("HAND-115", level="sampling")
async def what_is_taken_stands_in_either_place(scene: HostScene) -> None:
    taken: dict[str, Any] = {"capabilities": {}, "client_capabilities": {"cancellation": {}}}
    actor = await scene.plugin(manifest=manifest_of(), handlers={"initialize": handshake(**taken)})
    command, request = await scene.begin(actor)
    cancelling = scene.around.adapter.give("cancel", invoke=command.id, reason="kit")
    told = await actor.life.next("executa/cancel")
    expect(told.params.get("invoke_id") == request.invoke_id, f"it names {told.params!r}")
    actor.life.fail(request, -32000, "cancelled", {"errorCode": "INVOKE_CANCELLED"})
    await scene.answered(cancelling, scene.patience.answer + scene.around.pace("cancel"))


@host("HAND-116", level="sampling")
async def v2_and_the_manifest_are_enough(scene: HostScene) -> None:
    actor = await scene.plugin(capabilities=("llm.sample",), taken={})
    _, request = await scene.begin(actor)
    answer = await actor.life.ask(SAMPLE, ASKED, under=request)
    expect("result" in answer, f"sampling was refused: {answer.get('error')!r:.200}")
    actor.life.result(request)
