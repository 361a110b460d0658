"""Reverse calls that many checks make: an open invoke to make them under, and what is said."""

from typing import Any, Final

from executa_conformance.host.actor import Actor
from executa_conformance.host.adapter import Command
from executa_conformance.host.life import Frame, Request
from executa_conformance.host.scene import HostScene
from executa_conformance.reading import code_of, expect, items, members, symbol_of

SAMPLE: Final = "sampling/createMessage"
COMPLETE: Final = "agent/complete"
CREATE: Final = "agent/session.create"
RUN: Final = "agent/session.run"

ASKED: Final[dict[str, Any]] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
    "maxTokens": 16,
}
"""Params of a sampling call."""

AUTO: Final[dict[str, Any]] = {"kind": "agent", "agent_submode": "auto"}
"""Params that create an agent session."""

GET: Final[dict[str, Any]] = {"key": "notes/1", "scope": "user"}
"""Params of storage/get."""

AGENT: Final = ("llm.sample", "llm.agent.auto")
"""What a plugin declares for agent sessions."""

EVERYTHING: Final = (*AGENT, "aps.kv", "aps.files")
"""What a plugin declares for all chapters."""


class Open:
    """An invoke that is open, and the plugin that serves it."""

    def __init__(self, scene: HostScene, actor: Actor, command: Command, request: Request) -> None:
        self.scene = scene
        self.actor = actor
        self.command = command
        self.request = request

    async def ask(self, method: str, params: Any, *, wrong: bool = False) -> Frame:
        """Make a reverse call under the invoke; its answer."""
        return await self.actor.life.ask(method, params, under=self.request, wrong=wrong)

    async def get(self, method: str, params: Any, *, wrong: bool = False) -> Any:
        """The result of a reverse call. Raises `NotMet` if it is refused."""
        answer = await self.ask(method, params, wrong=wrong)
        expect("result" in answer, f"{method} was refused: {answer.get('error')!r:.240}")
        return answer["result"]

    async def refused(
        self, method: str, params: Any, code: int, symbol: str = "", *, wrong: bool = False
    ) -> Frame:
        """A reverse call is refused with this code; the error. Raises `NotMet` otherwise."""
        answer = await self.ask(method, params, wrong=wrong)
        expect(code_of(answer) == code, f"expected {code} for {method}, got {answer!r:.200}")
        told = symbol_of(answer)
        expect(symbol in ("", told), f"expected errorCode {symbol}, got {told!r}")
        return members(answer.get("error"))

    async def end(self) -> None:
        """Answer the invoke, and see to it that this completes it."""
        self.actor.life.result(self.request, "ended")
        outcome = await self.scene.outcome(self.command)
        expect(outcome.data == "ended", f"the invoke gave {outcome.data!r:.80}")

    async def create(self, **params: Any) -> str:
        """An agent session; its uuid."""
        made = await self.get(CREATE, {**AUTO, **params})
        return str(made.get("app_session_uuid"))


async def open_invoke(
    scene: HostScene, capabilities: tuple[str, ...], actor: Actor | None = None, **members: Any
) -> Open:
    """An open invoke of a plugin that declares this, which is started if it is not given."""
    if actor is None:
        actor = await scene.plugin(capabilities=capabilities)
    return Open(scene, actor, *await scene.begin(actor, **members))


async def with_book(scene: HostScene, capabilities: tuple[str, ...], **changes: Any) -> Open:
    """As `open_invoke`, with members of nexus's book changed before."""
    actor = scene.cast(capabilities=capabilities)
    for name, value in changes.items():
        setattr(actor.book, name, value)
    await scene.start(actor)
    return await open_invoke(scene, capabilities, actor)


def run_of(uuid: str, **params: Any) -> dict[str, Any]:
    """Params of a run."""
    return {"app_session_uuid": uuid, "content": "Plan my week.", **params}


def frames_in(result: Any) -> list[Frame]:
    """The frames of a run's answer, in either form."""
    return items(result) or items(members(result).get("frames"))
