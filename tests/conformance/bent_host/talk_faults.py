"""What a host can get wrong towards who drives it: changes of the adapter protocol's lines."""

from collections.abc import Callable, Iterable
from typing import Any, Final

Members = dict[str, Any]


class Talk:
    """A fault of commands and answers. As it stands it changes nothing."""

    def ask(self, command: Members) -> None:
        """Change a command before the host gets it."""

    def tell(self, command: Members, answer: Members) -> Iterable[Members]:
        """What is answered in place of `answer`."""
        return [answer]


class NeverFails(Talk):
    """Everything is said to have gone well."""

    def tell(self, command: Members, answer: Members) -> Iterable[Members]:
        if "error" not in answer:
            return [answer]
        done = {"protocol": "2.0", "success": True, "data": None, "error": ""}
        return [{"id": answer["id"], "ok": done}]


class NeverStarts(Talk):
    """No plugin is started."""

    def tell(self, command: Members, answer: Members) -> Iterable[Members]:
        if command["op"] != "start" or "ok" not in answer:
            return [answer]
        error = {"kind": "start", "message": "this plugin cannot be started"}
        return [{"id": answer["id"], "error": error}]


class LosesCalls(Talk):
    """Calls that went well are said to be lost."""

    def tell(self, command: Members, answer: Members) -> Iterable[Members]:
        if command["op"] != "invoke" or "ok" not in answer:
            return [answer]
        return [{"id": answer["id"], "error": {"kind": "lost", "message": "lost"}}]


class ForgetsFailures(Talk):
    """Calls that failed are never answered."""

    def tell(self, command: Members, answer: Members) -> Iterable[Members]:
        return [] if command["op"] == "invoke" and "error" in answer else [answer]


class SlowToStop(Talk):
    """The first stop is not answered."""

    def __init__(self) -> None:
        self._stopped = False

    def tell(self, command: Members, answer: Members) -> Iterable[Members]:
        if command["op"] != "stop" or self._stopped:
            return [answer]
        self._stopped = True
        return []


class Quiet(Talk):
    """Progress is not passed on."""

    def tell(self, command: Members, answer: Members) -> Iterable[Members]:
        return [] if "progress" in answer else [answer]


class Chatty(Talk):
    """Calls have progress that is not theirs."""

    def tell(self, command: Members, answer: Members) -> Iterable[Members]:
        if command["op"] != "invoke" or "ok" not in answer:
            return [answer]
        return [{"id": answer["id"], "progress": {"of": "another"}}, answer]


def asking(change: Callable[[Members], Any]) -> type[Talk]:
    """A fault that changes commands."""

    class Changed(Talk):
        def ask(self, command: Members) -> None:
            change(command)

    return Changed


def telling(part: str, change: Callable[[Members], Any]) -> type[Talk]:
    """A fault that changes the ``ok`` or the ``error`` of answers."""

    class Changed(Talk):
        def tell(self, command: Members, answer: Members) -> Iterable[Members]:
            if part in answer and isinstance(answer[part], dict):
                change(answer[part])
            return [answer]

    return Changed


def of(op: str, change: Callable[[Members], Any]) -> Callable[[Members], Any]:
    """A change of commands of one kind."""
    return lambda command: change(command) if command["op"] == op else None


def _cut(command: Members) -> None:
    command["arguments"] = {
        name: str(value)[:1000] for name, value in command.get("arguments", {}).items()
    }


TALK: Final[dict[str, Callable[[], Talk]]] = {
    "never-fails": NeverFails,
    "never-starts": NeverStarts,
    "loses-calls": LosesCalls,
    "forgets-failures": ForgetsFailures,
    "slow-to-stop": SlowToStop,
    "quiet": Quiet,
    "chatty": Chatty,
    "cuts-arguments": asking(of("invoke", _cut)),
    "patient": asking(of("invoke", lambda it: it.update(timeout=30))),
    "one-user": asking(lambda it: it.pop("user", None)),
    "no-app": asking(lambda it: it.pop("app", None)),
    "no-written": telling("error", lambda it: it.update(written=False)),
    "vague": telling("error", lambda it: it.update(message="no")),
    "no-codes": telling("error", lambda it: it.pop("code", None)),
    "always-success": telling("ok", lambda it: it.update(success=True, error="")),
    "always-confirmed": telling("ok", lambda it: it.update(outcome="confirmed")),
    "never-confirmed": telling("ok", lambda it: it.update(outcome="unanswered")),
}
"""Every fault by its name."""
