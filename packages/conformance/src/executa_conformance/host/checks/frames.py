"""Frames that a host must not choke on: broken, too long, too deep, no JSON (R-10, R-11, R-14)."""

from functools import partial
from typing import Any

import msgspec

from executa_conformance.host.life import Request
from executa_conformance.host.scene import HostScene
from executa_conformance.host.spelled import Spelled, completes
from executa_conformance.reading import code_of, expect
from executa_conformance.registry import check
from executa_protocol.limits import KIB, MAX_INLINE_RESULT, MAX_LINE

host = partial(check, role="host")

UNKNOWN = "kit/unknown"


@host("WIRE-112")
async def a_broken_request(scene: HostScene) -> None:
    actor = await scene.plugin()
    life = actor.life
    for identity, quoted in (("b1", b'"b1"'), (71, b"71")):
        life.expect_answer(identity)
        life.raw(b'{"jsonrpc":"2.0","id":%b,"method":"storage/get","params":{"key"\n' % quoted)
        answer = await life.reply(identity)
        code = code_of(answer)
        expect(code == -32700, f"expected -32700 under the id {identity!r}, got {answer!r:.160}")


@host("WIRE-113")
async def a_broken_response(scene: HostScene) -> None:
    actor = await scene.plugin()
    first, broken = await scene.begin(actor)
    second, whole = await scene.begin(actor)
    identity = msgspec.json.encode(broken.id)
    actor.life.raw(b'{"jsonrpc":"2.0","id":%b,"result":{"success":tru\n' % identity)
    await scene.failure(first)
    expect(not second.done, "a broken response ended another call, too")
    actor.life.result(whole, "untouched")
    expect((await scene.outcome(second)).data == "untouched", "the other call lost its answer")


@host("WIRE-114", patience=2)
async def lines_up_to_the_cap(scene: HostScene) -> None:
    actor = await scene.plugin()
    frame = {"jsonrpc": "2.0", "id": "big", "method": UNKNOWN, "params": {"filler": ""}}
    room = MAX_LINE - len(msgspec.json.encode(frame)) - KIB
    actor.life.say(frame | {"params": {"filler": "x" * room}}, wrong=True)
    answer = await actor.life.reply("big")
    code = code_of(answer)
    expect(code == -32601, f"a request of just under 16 MiB was answered with {answer!r:.160}")


@host("WIRE-116", patience=2)
async def a_response_over_the_cap(scene: HostScene) -> None:
    actor = await scene.plugin()
    first, long = await scene.begin(actor)
    second, other = await scene.begin(actor)
    actor.life.raw(Spelled("x" * (MAX_LINE + KIB))(long))
    await scene.failure(first)
    actor.life.result(other, "untouched")
    expect((await scene.outcome(second)).data == "untouched", "the other call lost its answer")


@host("WIRE-117", patience=2)
async def a_reverse_request_over_the_cap(scene: HostScene) -> None:
    actor = await scene.plugin()
    life = actor.life
    for identity in (72, "long"):
        filler = {"filler": "x" * (MAX_LINE + KIB)}
        life.say(
            {"jsonrpc": "2.0", "id": identity, "method": UNKNOWN, "params": filler}, wrong=True
        )
        answer = await life.reply(identity)
        code = code_of(answer)
        refused = isinstance(code, int) and code != -32601
        expect(refused, f"a request over the cap was answered with {answer!r:.160}")
    await scene.works(actor)


@host("WIRE-119")
async def a_result_over_four_mib(scene: HostScene) -> None:
    actor = await scene.plugin()
    command, request = await scene.begin(actor)
    actor.life.raw(Spelled("x" * (MAX_INLINE_RESULT + KIB))(request))
    fault = await scene.failure(command)
    expect(
        fault.symbol == "RESULT_TOO_LARGE",
        f"expected errorCode RESULT_TOO_LARGE, got {fault.symbol or fault!r}",
    )


@host("WIRE-121", patience=2)
async def a_request_over_the_cap_is_not_written(scene: HostScene) -> None:
    actor = await scene.plugin()
    before = len(actor.life.requests)
    command = scene.invoke(actor, {"text": "x" * (MAX_LINE + KIB)})
    await scene.failure(command)
    await scene.works(actor)
    invokes = [one for one in actor.life.requests[before:] if one.method == "invoke"]
    expect(len(invokes) == 1, "the request that is too long reached the plugin")


@host("WIRE-127")
async def content_that_json_does_not_have(scene: HostScene) -> None:
    actor = await scene.plugin()
    for bad in (b'"\xff\xfe"', b'"\\ud800"', b"NaN", b"Infinity", b"1e999"):
        command, request = await scene.begin(actor)
        identity = msgspec.json.encode(request.id)
        actor.life.raw(
            b'{"jsonrpc":"2.0","id":%b,"result":{"success":true,"data":%b}}\n' % (identity, bad)
        )
        await scene.failure(command)
    await scene.works(actor)


@host("WIRE-129")
async def nesting(scene: HostScene) -> None:
    actor = await scene.plugin()
    deep: Any = "bottom"
    for _ in range(60):
        deep = [deep]
    await completes(scene, actor, Spelled(deep), deep)
    command, request = await scene.begin(actor)
    bomb = b"[" * 100_000 + b"]" * 100_000
    identity = msgspec.json.encode(request.id)
    actor.life.raw(
        b'{"jsonrpc":"2.0","id":%b,"result":{"success":true,"data":%b}}\n' % (identity, bomb)
    )
    await scene.failure(command)
    await scene.works(actor)


@host("WIRE-131")
async def a_member_that_occurs_twice(scene: HostScene) -> None:
    actor = await scene.plugin()

    def twice(request: Request) -> bytes:
        identity = msgspec.json.encode(request.id)
        return (
            b'{"jsonrpc":"2.0","id":%b,"result":{"success":true,"data":"one"},'
            b'"result":{"success":true,"data":"two"}}\n' % identity
        )

    await completes(scene, actor, twice, "two")
