"""Ids are echoed with value and type, and answers to nobody do no harm (R-13)."""

from executa_conformance.model import NotMet
from executa_conformance.plugin.scene import Scene
from executa_conformance.registry import check

UNUSUAL = (0, "", -1, "a\u2028\U0001f600", "7", 2**31, 2**53)
LARGE = (2**53 + 1, 2**63 - 1, 2**64 + 5)


async def _echo(scene: Scene, identities: tuple[int | str, ...]) -> None:
    async with scene.start() as session:
        await session.initialize()
        for identity in identities:
            try:
                answer = await session.request("describe", identity=identity)
            except NotMet as fault:
                other = f"; id {session.stray[-1].id!r} was" if session.stray else ""
                msg = f"id {identity!r}: {fault}{other}"
                raise NotMet(msg) from None
            if type(answer.id) is not type(identity) or answer.id != identity:
                msg = f"id {identity!r} came back as {answer.id!r}"
                raise NotMet(msg)


@check("WIRE-123", role="plugin")
async def unusual_ids_are_echoed(scene: Scene) -> None:
    await _echo(scene, UNUSUAL)


@check("WIRE-143", role="plugin")
async def large_ids_are_exact(scene: Scene) -> None:
    await _echo(scene, LARGE)


@check("WIRE-125", role="plugin")
async def an_answer_to_nobody_is_dropped(scene: Scene) -> None:
    async with scene.ready() as session:
        for number, content in enumerate(
            (b'"result":{}', b'"result":null', b'"error":{"code":-32000,"message":"no"}')
        ):
            identity = f"kit-nobody-{number}"
            line = b'{"jsonrpc":"2.0","id":"%b",%b}\n' % (identity.encode(), content)
            await session.send_wrong(line, "a response that nobody waits for", answers=identity)
        await session.quiet("a response that nobody waits for")
        await session.alive("responses that nobody waits for")
