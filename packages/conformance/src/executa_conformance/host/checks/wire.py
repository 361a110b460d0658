"""Lines that a host reads: ends, junk, ids and limits (R-04, R-10, R-11, R-13, R-14)."""

from functools import partial
from typing import Any

from executa_conformance.host.life import Life, Request
from executa_conformance.host.parts import handshake
from executa_conformance.host.scene import HostScene
from executa_conformance.host.spelled import Spelled, completes
from executa_conformance.reading import code_of, expect, symbol_of
from executa_conformance.registry import check
from executa_protocol.methods.extensions import EXTENSIONS

host = partial(check, role="host")

UNKNOWN = "kit/unknown"


@host("WIRE-102")
async def carriage_returns_before_the_line_end(scene: HostScene) -> None:
    actor = await scene.plugin()
    await completes(scene, actor, Spelled("crlf", after=b"\r\n"), "crlf")


@host("WIRE-104")
async def blank_lines(scene: HostScene) -> None:
    actor = await scene.plugin()
    actor.life.raw(b"\n\r\n   \n")
    await completes(scene, actor, Spelled("blank", before=b"\n", after=b"\n\n"), "blank")


@host("WIRE-106")
async def a_byte_order_mark_at_the_beginning(scene: HostScene) -> None:
    def marked(life: Life, request: Request) -> None:
        life.raw(b"\xef\xbb\xbf", "a byte order mark")
        handshake()(life, request)

    actor = await scene.plugin(handlers={"initialize": marked})
    command, request = await scene.begin(actor)
    actor.life.result(request, "bom")
    expect((await scene.outcome(command)).data == "bom", "the invoke was not completed")
    asked = [one.method for one in actor.life.requests]
    expect(asked.count("initialize") == 1, f"the host asked {asked}")
    text = f"the answer to initialize was not read: the host says {actor.protocol}"
    expect(actor.protocol.startswith("2."), text)


@host("WIRE-108")
async def separators_that_are_no_line_ends(scene: HostScene) -> None:
    actor = await scene.plugin()
    text = "a\u2028b\u2029c\u0085d"
    await completes(scene, actor, Spelled(text), text)


@host("WIRE-110")
async def junk_on_stdout(scene: HostScene) -> None:
    actor = await scene.plugin()
    command, request = await scene.begin(actor)
    for junk in (b"starting up...", b"{", b"[1, 2]", b'"text"', b"42", b"null", b"\x00\xff\xfe"):
        actor.life.raw(junk + b"\n", "no frame, on purpose")
    actor.life.result(request, "through")
    outcome = await scene.outcome(command)
    expect(outcome.data == "through", f"the invoke gave {outcome.data!r}")
    await scene.works(actor)


@host("WIRE-122")
async def ids_are_echoed(scene: HostScene) -> None:
    actor = await scene.plugin()
    for identity in (0, "", 7, "7", -1, 2**53 + 1, "r\u00e9f\u2028"):
        answer = await actor.life.ask(UNKNOWN, identity=identity, wrong=True)
        expect("error" in answer, f"{UNKNOWN} was answered with {answer!r:.120}")


@host("WIRE-124")
async def answers_that_nobody_waits_for(scene: HostScene) -> None:
    actor = await scene.plugin()
    life = actor.life
    command, request = await scene.begin(actor)
    for identity in (987_654, "nobody", 10**30, [1]):
        life.say({"jsonrpc": "2.0", "id": identity, "result": {"success": True}}, wrong=True)
    expect(not command.done, "a response under an unknown id ended the invoke")
    life.result(request, "first")
    life.say({"jsonrpc": "2.0", "id": request.id, "result": {"success": False}}, wrong=True)
    outcome = await scene.outcome(command)
    expect(outcome.data == "first", f"the invoke gave {outcome.data!r}")
    await scene.works(actor)


@host("WIRE-126")
async def an_id_of_another_json_type(scene: HostScene) -> None:
    actor = await scene.plugin()
    for spell in (_other, _fraction):
        command, request = await scene.begin(actor)
        result = {"success": True, "data": "meant"}
        frame = {"jsonrpc": "2.0", "id": spell(request.id), "result": result}
        actor.life.say(frame, wrong=True)
        outcome = await scene.outcome(command)
        expect(outcome.data == "meant", f"the invoke gave {outcome.data!r}")
    command, request = await scene.begin(actor)
    actor.life.say({"jsonrpc": "2.0", "id": True, "result": {"success": True}}, wrong=True)
    await scene.pause()
    expect(not command.done, "an answer under the id true ended an invoke")
    actor.life.result(request)
    await scene.outcome(command)


def _other(identity: Any) -> Any:
    """The same id in the other JSON type."""
    if isinstance(identity, str):
        return int(identity) if identity.isdigit() else identity
    return str(identity)


def _fraction(identity: Any) -> Any:
    return float(identity) if isinstance(identity, int) else identity


@host("WIRE-135")
async def every_reverse_request_is_answered_once(scene: HostScene) -> None:
    actor = await scene.plugin()
    life = actor.life
    command, request = await scene.begin(actor)
    made = [
        life.call("storage/get", {"key": "k", "scope": "user"}, under=request),
        life.call("sampling/createMessage", {}, under=request, wrong=True),
        life.call(UNKNOWN, under="f" * 32, wrong=True),
    ]
    for identity in made:
        await life.reply(identity)
    life.result(request)
    await scene.outcome(command)
    late = life.call("storage/get", {"key": "k", "scope": "user"}, under=request)
    await life.reply(late)
    await scene.pause()
    for identity in (*made, late):
        count = sum(answer.get("id") == identity for answer in life.answers)
        expect(count == 1, f"the reverse call {identity} was answered {count} times")


@host("WIRE-136")
async def an_unknown_reverse_method(scene: HostScene) -> None:
    actor = await scene.plugin()
    answer = await actor.life.ask(UNKNOWN, wrong=True)
    code = code_of(answer)
    expect(code == -32601, f"expected -32601, got {answer!r:.160}")


@host("WIRE-138")
async def a_known_method_that_is_not_served(scene: HostScene) -> None:
    actor = await scene.plugin()
    for method, _, _ in EXTENSIONS:
        answer = await actor.life.ask(method, wrong=True)
        if code_of(answer) == -32601:
            symbol = symbol_of(answer)
            expect(symbol == "UNMAPPED_METHOD", f"{method} is refused with {symbol!r}")


@host("WIRE-140")
async def notifications_are_not_answered(scene: HostScene) -> None:
    actor = await scene.plugin()
    life = actor.life
    for method in (UNKNOWN, "executa/progress", "notifications/initialized"):
        life.say({"jsonrpc": "2.0", "method": method, "params": {"data": {}}}, wrong=True)
    await scene.works(actor)
    await scene.pause()
    expect(not life.answers, f"a notification was answered: {life.answers[:1]!r:.160}")


@host("WIRE-142")
async def frames_are_whole_lines(scene: HostScene) -> None:
    actor = await scene.plugin()
    text = "z\u00fcrich \u2028 \U0001f600 line\nend"
    command, request = await scene.begin(actor, {"text": text})
    expect(request.params.get("arguments") == {"text": text}, "the arguments came changed")
    expect(not request.raw.endswith(b"\r"), "the line ends with CRLF")
    actor.life.result(request)
    await scene.outcome(command)
    expect(not actor.life.rest, "bytes without a line end came after the last line")


@host("WIRE-145")
async def unknown_members_are_ignored(scene: HostScene) -> None:
    actor = await scene.plugin()
    command, request = await scene.begin(actor)
    result = {"success": True, "data": "kept", "kit_extra": {"a": [1]}}
    frame = {"jsonrpc": "2.0", "id": request.id, "kit_extra": 1, "result": result}
    actor.life.say(frame, wrong=True)
    outcome = await scene.outcome(command)
    expect(outcome.data == "kept", f"the invoke gave {outcome.data!r}")
