"""Large results, by file where the host offered it (R-12)."""

import os

from executa_conformance.model import NotApplicable, NotMet
from executa_conformance.plugin.answer import Answer
from executa_conformance.plugin.scene import Scene
from executa_conformance.plugin.session import Session
from executa_conformance.registry import check
from executa_protocol.filetransport import FILE_MODE
from executa_protocol.handshake import host_offer
from executa_protocol.limits import SPILL_THRESHOLD

SIZE = SPILL_THRESHOLD + 64 * 1024


async def _large(scene: Scene, session: Session) -> Answer:
    """The answer of a tool that gives a large text back. Raises `NotApplicable`."""
    case, name = await scene.echo(session)
    answer = await session.invoke(case.tool, {**case.arguments, name: "x" * SIZE})
    if answer.size <= SPILL_THRESHOLD and not answer.pointer:
        msg = f"{case.tool} gives no large text back"
        raise NotApplicable(msg)
    return answer


@check("FILE-014", role="plugin", level="v2")
async def a_large_result_goes_by_file_if_that_was_offered(scene: Scene) -> None:
    async with scene.ready() as session:
        answer = await _large(scene, session)
        if not answer.pointer:
            msg = f"a result of {answer.size:,} bytes came inline, and fileTransport was offered"
            raise NotMet(msg)


@check("FILE-015", role="plugin", level="v2")
async def the_response_file_is_private(scene: Scene) -> None:
    async with scene.ready() as session:
        answer = await _large(scene, session)
        if not answer.pointer:
            raise NotApplicable("the plugin sent no file pointer")
        if answer.mode != FILE_MODE:
            msg = f"the response file has mode {answer.mode:04o}, not {FILE_MODE:04o}"
            raise NotMet(msg)
        if os.path.dirname(answer.pointer) != str(session.folder):  # noqa: PTH120 - a text
            msg = f"{answer.pointer} does not lie in TMPDIR, {session.folder}"
            raise NotMet(msg)
        if answer.failed:
            msg = f"the response in the file is {answer}"
            raise NotMet(msg)


@check("WIRE-020", role="plugin", level="v2", name="no-pointer-without-the-offer")
@check("FILE-016", role="plugin", level="v2")
async def without_the_offer_it_goes_inline(scene: Scene) -> None:
    async with scene.ready(host_offer(file_transport=False)) as session:
        answer = await _large(scene, session)
        if answer.pointer:
            raise NotMet("a file pointer was sent, and fileTransport was not offered")


@check("FILE-017", role="plugin", level="v2", passive=True)
async def requests_never_go_by_file(scene: Scene) -> None:
    methods = 0
    scene.evidence.tell(scene.world.judged())
    for session in scene.world.sessions:
        methods += len(session.lookout.requests)
        for each in session.lookout.sightings:
            if "pointer stands beside a method" in each.message:
                scene.evidence.add("<", each.line, each.message)
                raise NotMet(each.message)
    if not methods:
        raise NotApplicable("the plugin has sent no request")
