"""For each check of a nexus, one that it must catch."""

import base64
import json
from collections.abc import Callable
from typing import Any, Final

from tests.conformance.bent_http.makers import (
    Codes,
    Failing,
    OpenDoor,
    Terse,
    answering,
    asking,
    framing,
    swallowing,
)
from tests.conformance.bent_http.relay import Answered, Bend, Members, Passing, members

OPEN: Final = "/executa/invokes"


def _claims(change: Callable[[Members], Any]) -> Callable[[], Bend]:
    """Tokens hold other claims. Their signature is wrong then, which nobody looks at."""

    def changed(grant: Members) -> None:
        for kind in ("sampling_token", "storage_token"):
            token = members(grant.get(kind))
            if token:
                head, body, signature = token["value"].split(".")
                held = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
                change(held)
                body = base64.urlsafe_b64encode(json.dumps(held).encode()).decode().rstrip("=")
                token["value"] = f"{head}.{body}.{signature}"

    return answering(OPEN, changed)


class Echoes(Bend):
    """Answers repeat the token that they were asked under."""

    def answer(self, passing: Passing, answered: Answered) -> None:
        answered.change(lambda it: it.update(asked_with=passing.bearer))


class OthersSessions(Bend):
    """Whose agent session it is does not matter when it is deleted."""

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}

    def ask(self, passing: Passing) -> Answered | None:
        if passing.method == "DELETE":
            passing.bearer = self._tokens.get(passing.path.rsplit("/", 1)[-1], passing.bearer)
        return None

    def answer(self, passing: Passing, answered: Answered) -> None:
        made = answered.members
        if "app_session_uuid" in made:
            self._tokens[str(made["app_session_uuid"])] = str(made["token"])


def _of(event: str, change: Callable[[Members], Any]) -> Callable[[], Bend]:
    """Frames of one kind are changed."""
    return framing(lambda it: change(it) if it.get("event") == event else None)


def _unmarked(frame: Members) -> Any:
    return [] if frame.get("done") else None


def _nameless(frame: Members) -> Any:
    if frame.get("event") != "delta":
        return None
    return [b"event: delta\ndata: " + json.dumps({"text": frame["text"]}).encode() + b"\n\n"]


def _chunk(frame: Members) -> Any:
    return [{"choices": [{"index": 0, "delta": {"content": frame["text"]}}]}]


_SCOPES: Final = ["user", "tool", "app"]

BENDS: Final[dict[str, Callable[[], Bend]]] = {
    "NEXS-001": answering(OPEN, lambda it: it.pop("caps")),
    "NEXS-002": answering(
        OPEN, lambda it: it.update(sampling_token={"value": "t"}, storage_token={"value": "s"})
    ),
    "NEXS-003": _claims(lambda it: it.update(aud="everything")),
    "NEXS-004": _claims(lambda it: it.update(tool_invoke_id="any")),
    "NEXS-005": swallowing("DELETE", OPEN, {}),
    "NEXS-006": swallowing("DELETE", OPEN, {}),
    "NEXS-007": OpenDoor,
    "NEXS-008": OpenDoor,
    "NEXS-009": OpenDoor,
    "NEXS-010": answering("/sampling", lambda it: it.pop("usage", None)),
    "NEXS-011": Codes,
    "NEXS-012": answering("/from_sampling", lambda it: it.pop("thread_id", None)),
    "NEXS-013": OpenDoor,
    "NEXS-014": Codes,
    "NEXS-015": answering("/cancel", lambda it: it.update(cancelled=True)),
    "NEXS-016": OpenDoor,
    "NEXS-017": _of("tool_call", lambda it: it.pop("executor")),
    "NEXS-018": _of("tool_result", lambda it: [it, {**it, "data": {"said": "herons 1"}}]),
    "NEXS-019": OpenDoor,
    "NEXS-020": answering(OPEN, lambda it: it["storage_token"].update(scopes=_SCOPES)),
    "NEXS-021": answering("/get", lambda it: it.update(exists=True)),
    "NEXS-022": OpenDoor,
    "NEXS-023": asking("/list", lambda it: it.pop("cursor", None)),
    "NEXS-024": answering("/upload_begin", lambda it: it.update(put_url=f"{it['put_url']}0")),
    "NEXS-025": Terse,
    "NEXS-027": Echoes,
    "NEXS-028": Failing,
    "NEXS-029": OthersSessions,
    "NEXS-030": answering("/get", lambda it: it.update(value=str(it.get("value")))),
    "FRAME-001": _of("delta", lambda it: it.update(event="token")),
    "FRAME-002": _of("delta", lambda it: it.update(event="message")),
    "FRAME-003": _of("final", lambda it: it.update(event="complete")),
    "FRAME-004": _of("final", lambda it: [{"event": "keepalive"}, it]),
    "FRAME-005": _of("final", lambda it: [{"event": "run_meta", "run_id": "r"}, it]),
    "FRAME-006": framing(_unmarked),
    "FRAME-007": _of("delta", lambda it: [{"event": "sse", "data": it}]),
    "FRAME-008": _of("delta", _chunk),
    "FRAME-009": _of("final", lambda it: [{"event": "task_cancelled", "reason": "asked"}]),
    "FRAME-010": _of("delta", lambda it: it.update(seq=1, stream_id="s")),
    "FRAME-011": framing(_nameless),
    "FRAME-012": _of("delta", lambda it: [{"payload": it}]),
    "FRAME-013": _of("final", lambda it: it.pop("text")),
    "FRAME-101": _of("delta", lambda it: it.update(text=5)),
    "FRAME-102": _of("final", lambda it: [it, it]),
    "FRAME-103": _of("tool_result", lambda it: it.update(call_id="another")),
    "FRAME-104": _of("final", lambda it: it.pop("usage", None)),
    "FRAME-105": _of("delta", lambda it: [b"data: some text\n\n", it]),
}
"""By the requirement of the check."""
