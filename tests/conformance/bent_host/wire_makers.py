"""Faults from a function: what a host changes in its invokes, its results, its offer."""

from collections.abc import Callable, Iterable
from typing import Any

from tests.conformance.bent_host.wire_fault import Fault, Frame, is_invoke, members, read


class Invokes(Fault):
    """Changes invokes by `change`."""

    def change_down(self, frame: Frame) -> None:
        if is_invoke(frame):
            self.change(frame["params"])

    def change(self, params: Frame) -> None:
        """The params of an invoke."""


class Results(Fault):
    """Changes results of reverse calls by `change`."""

    def change_down(self, frame: Frame) -> None:
        if "result" in frame:
            frame["result"] = self.change(frame["result"])

    def change(self, result: Any) -> Any:
        """A result."""
        return result


class Offers(Fault):
    """Changes initialize by `change`."""

    def change_down(self, frame: Frame) -> None:
        if frame.get("method") == "initialize":
            self.change(frame["params"])

    def change(self, params: Frame) -> None:
        """The params of initialize."""


def invokes(change: Callable[[Frame], Any]) -> type[Fault]:
    """A fault that changes the params of every invoke."""

    class Changed(Invokes):
        def change(self, params: Frame) -> None:
            change(params)

    return Changed


def context(change: Callable[[Frame], Any]) -> type[Fault]:
    """A fault that changes the context of every invoke."""
    return invokes(lambda params: change(params["context"]))


def results(change: Callable[[Any], Any]) -> type[Fault]:
    """A fault that changes every result."""

    class Changed(Results):
        def change(self, result: Any) -> Any:
            changed = change(result)
            return result if changed is None else changed

    return Changed


def offers(change: Callable[[Frame], Any]) -> type[Fault]:
    """A fault that changes initialize."""

    class Changed(Offers):
        def change(self, params: Frame) -> None:
            change(params)

    return Changed


def frames(change: Callable[[list[Frame]], Any]) -> type[Fault]:
    """A fault that changes the frames of every run, in place."""

    def changed(result: Any) -> None:
        if "frames" in members(result):
            change(result["frames"])

    return results(changed)


def before_invokes(*lines: bytes, swallow: str = "") -> type[Fault]:
    """A host that writes lines of its own before each invoke, and takes the answer away."""

    class Added(Fault):
        def down(self, line: bytes) -> Iterable[bytes]:
            frame = read(line)
            return [*lines, line] if frame is not None and is_invoke(frame) else [line]

        def to_host(self, frame: Frame) -> Iterable[Frame] | None:
            return [] if swallow and frame.get("id") == swallow else None

    return Added


def dropping(method: str) -> type[Fault]:
    """A host that does not send a method."""

    class Dropped(Fault):
        def to_plugin(self, frame: Frame) -> Iterable[Frame]:
            return [] if frame.get("method") == method else [frame]

    return Dropped
