"""Values and files (R-03, R-29)."""

from typing import Any

from executa_conformance.model import NotApplicable, NotMet
from executa_conformance.plugin.checks.passive import schema_of
from executa_conformance.plugin.scene import Scene
from executa_conformance.plugin.services import Odd
from executa_conformance.registry import check
from executa_protocol.faults import as_object
from executa_protocol.methods import METHODS

VALUES = tuple(name for name in METHODS if name.startswith("storage/"))
FILES = tuple(name for name in METHODS if name.startswith("files/"))
REFUSALS = ("STORAGE_NOT_GRANTED", "STORAGE_UPSTREAM_ERROR", "STORAGE_RATE_LIMITED")


@check("STOR-115", role="plugin", level="storage", passive=True)
async def storage_calls_have_the_chapters_shape(scene: Scene) -> None:
    scene.facts.calling("storage")
    schema_of(scene, *(f"params of {method}" for method in VALUES), values=False)


@check("STOR-115", role="plugin", level="files", passive=True)
async def files_calls_have_the_chapters_shape(scene: Scene) -> None:
    scene.facts.calling("files")
    schema_of(scene, *(f"params of {method}" for method in FILES), values=False)


async def _refused(scene: Scene, level: str, methods: tuple[str, ...]) -> None:
    case = scene.facts.calling(level)
    async with scene.ready() as session:
        for row in REFUSALS:
            for method in methods:
                session.services.refuse(method, row)
            await session.invoke(case.tool, case.arguments)
            await session.alive(f"a {level} call that is refused as {row}")


@check("STOR-116", role="plugin", level="storage")
async def a_storage_refusal_ends_in_an_answer(scene: Scene) -> None:
    await _refused(scene, "storage", VALUES)


@check("STOR-116", role="plugin", level="files")
async def a_files_refusal_ends_in_an_answer(scene: Scene) -> None:
    await _refused(scene, "files", FILES)


@check("STOR-117", role="plugin", level="files")
async def both_spellings_of_a_url_are_read(scene: Scene) -> None:
    case = scene.facts.calling("files")
    async with scene.ready() as session:
        before = await session.invoke(case.tool, case.arguments)
        if before.failed:
            raise NotApplicable("the tool fails with the ordinary spelling, too")
        calls = session.services.made("files/upload_begin", "files/download_url")
        if not calls:
            raise NotApplicable("the plugin asked for no URL")
        parsed: dict[str, Any] = {call.method: call.parsed for call in calls}
        memory = session.services.memory

        def respell(method: str, old: str, new: str) -> None:
            def script(params: dict[str, Any]) -> Any:
                result = memory.serve(method, parsed[method])
                members = as_object(result)
                if members is None:
                    return result
                members[new] = members.pop(old)
                return Odd(members, f"{old} is spelled {new}")

            session.services.script(method, script)

        respell("files/upload_begin", "put_url", "presigned_url")
        respell("files/download_url", "url", "get_url")
        after = await session.invoke(case.tool, case.arguments)
        if after.failed:
            msg = f"with presigned_url and get_url the tool comes to {after}"
            raise NotMet(msg)
