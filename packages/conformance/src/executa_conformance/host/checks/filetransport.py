"""Responses by file (R-12)."""

import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from executa_conformance.host.actor import Actor
from executa_conformance.host.life import Life, Request
from executa_conformance.host.scene import HostScene
from executa_conformance.model import NotApplicable
from executa_conformance.reading import expect, members
from executa_conformance.registry import check
from executa_protocol.limits import KIB, MAX_FILE_TRANSPORT

host = partial(check, role="host")


def room(life: Life) -> Path:
    """The plugin's temporary directory.

    Raises `NotApplicable` if the host did not offer file transport, `NotMet` if there is none.
    """
    asked = [one.params for one in life.requests if one.method == "initialize"]
    offer = members(members(asked[0] if asked else None).get("capabilities"))
    if offer.get("fileTransport") is not True:
        raise NotApplicable("the host does not offer fileTransport")
    path = life.who["env"].get("TMPDIR", "")
    expect(bool(path), "the plugin has no TMPDIR")
    return Path(path)


def response(request: Request, data: object = "by file", identity: object = None) -> bytes:
    """The whole response, as a file holds it."""
    result = {"success": True, "data": data}
    given = request.id if identity is None else identity
    return msgspec.json.encode({"jsonrpc": "2.0", "id": given, "result": result})


def point(life: Life, request: Request, path: object) -> None:
    """Answer an invoke with a pointer."""
    frame = {"jsonrpc": "2.0", "id": request.id, "__file_transport": str(path)}
    life.say(frame, wrong=True)


def written(path: Path, content: bytes) -> Path:
    """A file with mode 0600."""
    path.write_bytes(content)
    path.chmod(0o600)
    return path


async def refused(
    scene: HostScene, actor: Actor, make: Callable[[Path, Request], object]
) -> object:
    """A pointer to what `make` gives fails its own call, and nothing else; the pointer."""
    command, request = await scene.begin(actor)
    other, beside = await scene.begin(actor)
    path = make(room(actor.life), request)
    point(actor.life, request, path)
    await scene.failure(command)
    expect(not other.done, "another call ended with it")
    actor.life.result(beside, "untouched")
    expect((await scene.outcome(other)).data == "untouched", "the other call lost its answer")
    return path


@host("FILE-002")
async def a_pointer_completes_its_call(scene: HostScene) -> None:
    actor = await scene.plugin()
    command, request = await scene.begin(actor)
    text = "f" * (600 * KIB)
    point(actor.life, request, written(room(actor.life) / "a.json", response(request, text)))
    expect((await scene.outcome(command)).data == text, "the file's response did not arrive")


@host("FILE-003")
async def a_file_that_was_read_is_deleted(scene: HostScene) -> None:
    actor = await scene.plugin()
    command, request = await scene.begin(actor)
    path = written(room(actor.life) / "a.json", response(request))
    point(actor.life, request, path)
    await scene.outcome(command)
    expect(not await asyncio.to_thread(path.exists), "the response file is still there")
    kept = await refused(
        scene, actor, lambda folder, it: written(folder / "b.json", response(it, identity="other"))
    )
    expect(await asyncio.to_thread(Path(str(kept)).exists), "a file that was not valid was deleted")


@host("FILE-004")
async def the_directory_is_private(scene: HostScene) -> None:
    first, second = await scene.plugin(), await scene.plugin()
    folder = room(first.life)
    mode = stat.S_IMODE(folder.stat().st_mode)
    expect(mode == 0o700, f"TMPDIR has mode {mode:o}")
    expect(folder != room(second.life), "two plugins have the same TMPDIR")


@host("FILE-005")
async def the_directory_is_swept(scene: HostScene) -> None:
    actor = await scene.plugin()
    folder = room(actor.life)
    await asyncio.to_thread(written, folder / "left.json", b"{}")
    await scene.stop(actor)
    await scene.pause()
    expect(not (folder / "left.json").exists(), "what the plugin left there is still there")


@host("FILE-006")
async def a_pointer_to_nothing(scene: HostScene) -> None:
    actor = await scene.plugin()
    await refused(scene, actor, lambda folder, it: folder / "not-there.json")
    await refused(scene, actor, lambda folder, it: written(folder / "x", response(it)).name)


@host("FILE-007")
async def a_pointer_to_no_regular_file(scene: HostScene) -> None:
    actor = await scene.plugin()

    def link(folder: Path, request: Request) -> Path:
        real = written(folder / "real.json", response(request))
        (folder / "link.json").symlink_to(real)
        return folder / "link.json"

    def fifo(folder: Path, request: Request) -> Path:
        os.mkfifo(folder / "fifo")
        return folder / "fifo"

    def directory(folder: Path, request: Request) -> Path:
        (folder / "folder").mkdir()
        return folder / "folder"

    for make in (link, fifo, directory):
        await refused(scene, actor, make)


@host("FILE-008")
async def a_pointer_to_elsewhere(scene: HostScene) -> None:
    home = await asyncio.to_thread(_outside)
    try:
        actor = await scene.plugin(start={"cwd": tempfile.gettempdir()})
        outside = await refused(
            scene, actor, lambda _, it: written(home / "outside.json", response(it))
        )
        expect(await asyncio.to_thread(Path(str(outside)).exists), "a file outside was deleted")
    finally:
        await asyncio.to_thread(shutil.rmtree, home)


def _outside() -> Path:
    """A folder that is none of the three where response files may lie."""
    return Path(tempfile.mkdtemp(prefix=".executa-kit-", dir=Path.home()))


@host("FILE-009")
async def a_file_with_another_id(scene: HostScene) -> None:
    actor = await scene.plugin()
    await refused(
        scene, actor, lambda folder, it: written(folder / "a", response(it, identity="other"))
    )


@host("FILE-010")
async def a_pointer_to_a_pointer(scene: HostScene) -> None:
    actor = await scene.plugin()

    def nested(folder: Path, request: Request) -> Path:
        inner = written(folder / "inner", response(request))
        frame = {"jsonrpc": "2.0", "id": request.id, "__file_transport": str(inner)}
        return written(folder / "outer", msgspec.json.encode(frame))

    await refused(scene, actor, nested)


@host("FILE-011")
async def a_file_over_the_cap(scene: HostScene) -> None:
    actor = await scene.plugin()

    def large(folder: Path, request: Request) -> Path:
        head = response(request)
        path = written(folder / "large", head)
        os.truncate(path, MAX_FILE_TRANSPORT + KIB)  # a hole: it takes no room
        return path

    await refused(scene, actor, large)


@host("FILE-012")
async def a_pointer_is_no_request(scene: HostScene) -> None:
    actor = await scene.plugin()
    life = actor.life
    path = room(life) / "request"
    asked = b'{"jsonrpc":"2.0","id":"by-file","method":"kit/unknown","params":{}}'
    await asyncio.to_thread(written, path, asked)
    life.say({"jsonrpc": "2.0", "id": "by-file", "__file_transport": str(path)}, wrong=True)
    await scene.works(actor)
    await scene.pause()
    answered = [one for one in life.answers if one.get("id") == "by-file"]
    expect(not answered, f"a request by file was answered: {answered!r:.160}")
