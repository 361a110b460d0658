"""Answers to an invoke as bytes of the check's own making."""

from collections.abc import Callable
from typing import Any

import msgspec

from executa_conformance.host.actor import Actor
from executa_conformance.host.life import Request
from executa_conformance.host.scene import HostScene
from executa_conformance.reading import expect


class Spelled:
    """The answer to an invoke as bytes: what stands around the frame is the check's own."""

    def __init__(self, data: Any, *, before: bytes = b"", after: bytes = b"\n") -> None:
        self._data = data
        self._before = before
        self._after = after

    def __call__(self, request: Request) -> bytes:
        result = {"success": True, "data": self._data}
        frame = {"jsonrpc": "2.0", "id": request.id, "result": result}
        return self._before + msgspec.json.encode(frame) + self._after


async def completes(
    scene: HostScene, actor: Actor, spell: Callable[[Request], bytes], wanted: Any
) -> None:
    """An invoke that is answered with `spell(request)` gives `wanted`."""
    command, request = await scene.begin(actor)
    actor.life.raw(spell(request))
    outcome = await scene.outcome(command)
    expect(outcome.data == wanted, f"the invoke gave {outcome.data!r:.120}, not {wanted!r:.120}")
