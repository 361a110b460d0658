"""Lines and requests as they may legally come (R-04, R-10, R-11, R-14)."""

from executa_conformance.model import NotMet
from executa_conformance.plugin.answer import Answer
from executa_conformance.plugin.scene import Scene
from executa_conformance.plugin.session import Session
from executa_conformance.registry import check
from executa_protocol.codec import encode
from executa_protocol.codes import METHOD_NOT_FOUND, PARSE_ERROR
from executa_protocol.framing import BOM
from executa_protocol.limits import MAX_LINE, MIB

SEPARATORS = "\u2028 \u2029 \u0085"
"""What Unicode calls a line end and the wire does not; VT and FF stand in no JSON string."""

LARGE = 3 * MIB


def described(answer: Answer, what: str) -> None:
    """Raise `NotMet` unless describe was answered with a manifest."""
    if "tools" not in answer.members:
        msg = f"{what}: expected the manifest, got {answer}"
        raise NotMet(msg)


async def _odd_line(session: Session, template: bytes, why: str) -> None:
    """Send a describe that looks odd and is legal, and want its answer."""
    own = session.fresh_id()
    future = await session.send_wrong(template % own, why, answers=own)
    described(await session.answer(future, f"describe with {why}"), why)


@check("WIRE-101", role="plugin")
async def crlf_ends_a_line(scene: Scene) -> None:
    async with scene.ready() as session:
        await _odd_line(session, b'{"jsonrpc":"2.0","id":%d,"method":"describe"}\r\n', "CRLF")


@check("WIRE-103", role="plugin")
async def blank_lines_are_ignored(scene: Scene) -> None:
    async with scene.ready() as session:
        line = b'\n\r\n  \t\n{"jsonrpc":"2.0","id":%d,"method":"describe"}\n'
        await _odd_line(session, line, "blank lines before it")
        await session.quiet("a blank line")


@check("WIRE-105", role="plugin")
async def a_byte_order_mark_is_stripped(scene: Scene) -> None:
    async with scene.start() as session:
        line = BOM + b'{"jsonrpc":"2.0","id":%d,"method":"describe"}\n'
        await _odd_line(session, line, "a byte order mark before the first line")


@check("WIRE-107", role="plugin")
async def only_lf_ends_a_line(scene: Scene) -> None:
    async with scene.ready() as session:
        params = encode({"note": f"a{SEPARATORS}b"})
        line = b'{"jsonrpc":"2.0","id":%d,"method":"describe","params":' + params + b"}\n"
        await _odd_line(session, line, "U+2028, U+2029 and U+0085 in a string")


@check("WIRE-109", role="plugin")
async def what_is_no_object_is_skipped(scene: Scene) -> None:
    async with scene.ready() as session:
        for line in (b"what is this\n", b"[1,2]\n", b'"describe"\n', b"17\n", b"null\n"):
            await session.send_wrong(line, "no JSON object")
        await session.alive("lines that are no objects")


@check("WIRE-111", role="plugin")
async def a_broken_request_is_answered_under_its_id(scene: Scene) -> None:
    async with scene.ready() as session:
        own = session.fresh_id()
        line = b'{"jsonrpc":"2.0","id":%d,"method":"describe","params":{"a":\n' % own
        future = await session.send_wrong(line, "a request that is cut off", answers=own)
        answer = await session.answer(future, "a broken line with a method and an id")
        if answer.code != PARSE_ERROR:
            msg = f"expected {PARSE_ERROR}, got {answer}"
            raise NotMet(msg)
        await session.alive("a broken request")


@check("WIRE-115", role="plugin")
async def a_large_request_is_served(scene: Scene) -> None:
    async with scene.ready() as session:
        line = b'{"jsonrpc":"2.0","id":%d,"method":"describe","params":{"note":"'
        line += b"x" * LARGE + b'"}}\n'
        await _odd_line(session, line, f"{LARGE:,} bytes of params")


@check("WIRE-118", role="plugin")
async def a_request_over_the_cap_is_answered(scene: Scene) -> None:
    async with scene.ready() as session:
        own = session.fresh_id()
        line = b'{"jsonrpc":"2.0","id":%d,"method":"describe","params":{"note":"' % own
        line += b"x" * MAX_LINE + b'"}}\n'
        future = await session.send_wrong(line, "a line over the cap", answers=own)
        # With an error, or as any other request by a plugin whose cap is set higher.
        await session.answer(future, "a request over the cap")
        await session.alive("a request over the cap")


@check("WIRE-128", role="plugin")
async def invalid_content_spoils_its_frame_only(scene: Scene) -> None:
    async with scene.ready() as session:
        for content in (b'"\xff\xfe"', b'"\\ud800"', b"NaN", b"Infinity", b"-Infinity", b"1e999"):
            own = session.fresh_id()
            parts = (own, content)
            line = b'{"jsonrpc":"2.0","id":%d,"method":"describe","params":{"a":%b}}\n' % parts
            why = f"{content.decode(errors='backslashreplace')} in params"
            future = await session.send_wrong(line, why, answers=own)
            await session.alive(why)
            if future.done() and future.result().error is None:
                msg = f"{why} is invalid, and was answered with a result"
                raise NotMet(msg)


@check("WIRE-130", role="plugin")
async def deep_nesting_does_no_harm(scene: Scene) -> None:
    async with scene.ready() as session:
        line = b'{"jsonrpc":"2.0","id":%d,"method":"describe","params":{"a":'
        fine = line + b"[" * 62 + b"]" * 62 + b"}}\n"
        await _odd_line(session, fine, "64 levels of nesting")
        own = session.fresh_id()
        deep = line % own + b"[" * 100_000 + b"]" * 100_000 + b"}}\n"
        await session.send_wrong(deep, "100,000 levels of nesting", answers=own)
        await session.alive("100,000 levels of nesting")


@check("WIRE-132", role="plugin")
async def the_last_of_two_members_counts(scene: Scene) -> None:
    async with scene.ready() as session:
        line = b'{"jsonrpc":"2.0","id":"first","id":%d,"method":"kit/no","method":"describe"}\n'
        await _odd_line(session, line, "members that stand twice")


@check("WIRE-134", role="plugin")
async def every_request_is_answered_once(scene: Scene) -> None:
    async with scene.ready() as session:
        case = scene.facts.plain
        futures = [
            await session.post("describe"),
            await session.post("health"),
            await session.post("kit/unknown"),
            (await session.call(case.tool, case.arguments)).answer,
            (await session.call("kit-unknown-tool", {})).answer,
            await session.post("describe"),
        ]
        for number, future in enumerate(futures, start=1):
            await session.answer(future, f"request {number} of {len(futures)}")
        await session.quiet("a request that was answered already")
        if session.stray:
            msg = f"there were {len(session.stray)} answers too many"
            raise NotMet(msg)


@check("WIRE-137", role="plugin")
async def an_unknown_method_is_answered_with_32601(scene: Scene) -> None:
    async with scene.ready() as session:
        for method in ("kit/unknown", "tools/list", ""):
            answer = await session.request(method)
            if answer.code != METHOD_NOT_FOUND:
                msg = f"method {method!r}: expected {METHOD_NOT_FOUND}, got {answer}"
                raise NotMet(msg)


@check("WIRE-139", role="plugin")
async def notifications_are_not_answered(scene: Scene) -> None:
    async with scene.ready() as session:
        await session.notify("kit/unknown", {"a": 1})
        await session.notify("executa/cancel", {"invoke_id": "0" * 32, "reason": "the kit"})
        await session.quiet("a notification")
        await session.alive("notifications")


@check("WIRE-141", role="plugin")
async def each_answer_is_flushed(scene: Scene) -> None:
    async with scene.ready() as session:
        case = scene.facts.plain
        # One at a time: an answer that waits for the next request never comes.
        await session.request("describe")
        await session.invoke(case.tool, case.arguments)
        await session.request("describe")


@check("WIRE-103", role="plugin")
async def white_space_between_tokens_is_ignored(scene: Scene) -> None:
    async with scene.ready() as session:
        line = b' { "jsonrpc" :\t"2.0" , "id" : %d ,\r "method" : "describe" }  \n'
        await _odd_line(session, line, "white space between tokens")


@check("WIRE-144", role="plugin")
async def unknown_members_are_ignored(scene: Scene) -> None:
    async with scene.ready() as session:
        case = scene.facts.plain
        own = session.fresh_id()
        line = (
            b'{"note":{"of":"the kit"},"params":{"kit":[1]},"method":"describe",'
            b'"id":%d,"jsonrpc":"2.0"}\n'
        ) % own
        future = await session.send_wrong(line, "unknown members, in another order", answers=own)
        described(await session.answer(future, "describe with unknown members"), "members")
        before = await session.invoke(case.tool, case.arguments)
        answer = await session.invoke(case.tool, case.arguments, extra={"kit": {"of": "tests"}})
        if answer.failed and not before.failed:
            msg = f"a member that it does not know makes an invoke fail: {answer}"
            raise NotMet(msg)
