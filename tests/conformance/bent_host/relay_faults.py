"""The faults towards nexus, by name."""

from collections.abc import Callable
from typing import Final

from tests.conformance.bent_host.relay import Body, Passing, Upstream


def changing(name: str, change: Callable[[Body], object]) -> type[Upstream]:
    """A fault that changes the bodies of requests of a name."""

    class Changed(Upstream):
        def change(self, passing: Passing) -> None:
            if passing.name == name:
                change(passing.body)

    return Changed


class OtherTokens(Upstream):
    """Requests go out under another token than their own."""

    def change(self, passing: Passing) -> None:
        if passing.name not in ("open", "renew", "close"):
            passing.bearer = "another-token"


class NeverCloses(Upstream):
    """Nexus is not told that an invoke has ended."""

    def swallows(self, passing: Passing) -> bytes | None:
        return b"{}" if passing.name == "close" else None


class NeverRenews(Upstream):
    """Tokens are taken to live for ever."""

    def answer(self, passing: Passing, answer: Body) -> None:
        token = answer.get("sampling_token")
        if isinstance(token, dict):
            token["expires_at"] = 4_000_000_000


class AsksAnyway(Upstream):
    """Nexus is asked for a completion that nobody may have."""

    async def after(self, passing: Passing, answer: Body) -> None:
        if passing.name == "open":
            bearer = str(answer["sampling_token"]["value"])
            await passing.again("copilot/sampling", bearer, {"messages": []})


class PostsTwice(Upstream):
    """Outcomes are posted twice."""

    async def after(self, passing: Passing, answer: Body) -> None:
        if passing.name == "tool_result":
            await passing.again()


class PostsLate(Upstream):
    """An outcome is posted for a run that has ended."""

    async def after(self, passing: Passing, answer: Body) -> None:
        if passing.name == "run":
            body: Body = {"run_id": "kit-run", "call_id": "call-0", "ok": True, "data": 1}
            await passing.again("copilot/app/agent/tool_result", body=body)


class NeverCancels(Upstream):
    """Runs go on at nexus whatever happens here."""

    detached = True

    def swallows(self, passing: Passing) -> bytes | None:
        return b'{"cancelled":true}' if passing.name == "cancel" else None


class KeepsStreams(Upstream):
    """A stream that is no longer wanted is left open."""

    detached = True


_TOOL: Final = {"name": "some.other", "description": "", "parameters": {"type": "object"}}

UPSTREAM: Final[dict[str, Callable[[], Upstream]]] = {
    "other-tokens": OtherTokens,
    "never-closes": NeverCloses,
    "never-renews": NeverRenews,
    "asks-anyway": AsksAnyway,
    "posts-twice": PostsTwice,
    "posts-late": PostsLate,
    "never-cancels": NeverCancels,
    "keeps-streams": KeepsStreams,
    "passes-context": changing("sampling", lambda it: it.update(context={"invoke_id": "x"})),
    "other-run-id": changing("run", lambda it: it.update(run_id="mine")),
    "no-tools": changing("run", lambda it: it.pop("tools", None)),
    "more-tools": changing("run", lambda it: it.setdefault("tools", []).append(_TOOL)),
    "not-ok": changing("tool_result", lambda it: it.update(ok=False)),
    "always-ok": changing("tool_result", lambda it: it.update(ok=True)),
    "other-data": changing("tool_result", lambda it: it.update(data="something")),
    "one-scope": changing("get", lambda it: it.update(scope="user")),
}
"""Every fault by its name."""
