"""What a host can get wrong in the lines that it writes."""

from collections.abc import Iterable
from typing import Any

from tests.conformance.bent_host.wire_fault import (
    Fault,
    Frame,
    is_answer,
    is_invoke,
    members,
    write,
)


class Codes(Fault):
    """Every refusal has the same code."""

    def change_down(self, frame: Frame) -> None:
        if "error" in frame:
            frame["error"] = {"code": -32000, "message": "no"}


class Plain(Fault):
    """Refusals say nothing beside their code."""

    def change_down(self, frame: Frame) -> None:
        if "error" in frame:
            frame["error"].pop("data", None)


class Lenient(Fault):
    """Nothing is refused."""

    def change_down(self, frame: Frame) -> None:
        if frame.pop("error", None) is not None:
            frame["result"] = {}


class Refusing(Fault):
    """Everything is refused."""

    def change_down(self, frame: Frame) -> None:
        if frame.pop("result", None) is not None:
            frame["error"] = {"code": -32603, "message": "no"}


class Hollow(Fault):
    """Results hold nothing."""

    def change_down(self, frame: Frame) -> None:
        if "result" in frame:
            frame["result"] = {}


class Mute(Fault):
    """Refusals are not written."""

    def to_plugin(self, frame: Frame) -> Iterable[Frame]:
        return [] if "error" in frame else [frame]


class Twice(Fault):
    """Every answer is written twice."""

    def to_plugin(self, frame: Frame) -> Iterable[Frame]:
        return [frame, frame] if is_answer(frame) else [frame]


class OtherIds(Fault):
    """Requests have ids of a type that is none, which the host understands itself."""

    def change_down(self, frame: Frame) -> None:
        if is_invoke(frame):
            frame["id"] = frame["id"] + 0.5

    def to_host(self, frame: Frame) -> Iterable[Frame] | None:
        if isinstance(frame.get("id"), float):
            return [{**frame, "id": int(frame["id"])}]
        return None


class SameId(Fault):
    """Every invoke has the same id."""

    def change_down(self, frame: Frame) -> None:
        if is_invoke(frame):
            frame["id"] = 5


class TypelessIds(Fault):
    """Ids of answers are written as strings."""

    def change_down(self, frame: Frame) -> None:
        if is_answer(frame):
            frame["id"] = str(frame["id"]) + ("" if isinstance(frame["id"], int) else "?")


class Envelope(Fault):
    """Changes the envelope of invokes."""

    def __init__(self, **members: Any) -> None:
        self._members = members

    def change_down(self, frame: Frame) -> None:
        if is_invoke(frame):
            frame.update(self._members)
            for name, value in self._members.items():
                if value is None:
                    del frame[name]


class Beside(Fault):
    """Answers have a member of the other kind, too."""

    def change_down(self, frame: Frame) -> None:
        if "result" in frame:
            frame["error"] = None
        elif "error" in frame:
            frame["result"] = None


class WordyCodes(Fault):
    """Codes are words."""

    def change_down(self, frame: Frame) -> None:
        if "error" in frame:
            frame["error"]["code"] = "refused"


class Cut(Fault):
    """The last line is cut off."""

    def before_end(self) -> Iterable[bytes]:
        return [b'{"jsonrpc":"2.0","met']


class Shutdown(Fault):
    """A shutdown request comes before the end."""

    def before_end(self) -> Iterable[bytes]:
        return [b'{"jsonrpc":"2.0","id":"bye","method":"shutdown"}\n']


class Hasty(Fault):
    """describe does not wait for the answer to initialize."""

    def to_plugin(self, frame: Frame) -> Iterable[Frame]:
        early = {"jsonrpc": "2.0", "id": "early", "method": "describe"}
        return [frame, early] if frame.get("method") == "initialize" else [frame]

    def to_host(self, frame: Frame) -> Iterable[Frame] | None:
        return [] if frame.get("id") == "early" else None


class Talkative(Fault):
    """Notifications are answered."""

    def to_host(self, frame: Frame) -> Iterable[Frame] | None:
        if "method" in frame and "id" not in frame:
            error = {"code": -32601, "message": "no such method"}
            self.write_down(write({"jsonrpc": "2.0", "id": None, "error": error}))
        return None


class Leaky(Fault):
    """Errors tell the token of the invoke."""

    token = ""

    def change_down(self, frame: Frame) -> None:
        if is_invoke(frame):
            self.token = frame["params"]["context"].get("sampling_token", "")
        elif "error" in frame:
            frame["error"]["message"] += f" (token {self.token})"


class Shallow(Fault):
    """Invokes nest at most two deep."""

    depth = 0

    def to_plugin(self, frame: Frame) -> Iterable[Frame]:
        if is_invoke(frame) and "parent_invoke_id" in frame["params"]["context"]:
            self.depth += 1
            if self.depth > 2:
                error = {"code": -32603, "message": "too deep"}
                self.write_up(write({"jsonrpc": "2.0", "id": frame["id"], "error": error}))
                return []
        return [frame]


class Serial(Fault):
    """While a run goes on, nothing else is answered."""

    def to_plugin(self, frame: Frame) -> Iterable[Frame]:
        return [] if "model" in members(frame.get("result")) else [frame]


class Cancels(Fault):
    """Every invoke is followed by executa/cancel."""

    def to_plugin(self, frame: Frame) -> Iterable[Frame]:
        if not is_invoke(frame):
            return [frame]
        params = {"invoke_id": frame["params"]["context"]["invoke_id"], "reason": "why not"}
        return [frame, {"jsonrpc": "2.0", "method": "executa/cancel", "params": params}]
