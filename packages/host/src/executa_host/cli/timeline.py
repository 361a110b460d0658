"""Trace events as lines for a person: who called whom, what was granted, what came back."""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.text import Text

from executa_protocol import transcript
from executa_protocol.codec import decode_any
from executa_protocol.transcript import AnyEvent

MAX_TEXT: Final = 160
"""Characters of content that one line shows."""

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_STYLES: Final = {"served": "green", "refused": "red", "failed": "yellow"}


class Timeline:
    """Prints events as they come, indented by how deep their invoke is nested."""

    def __init__(self, console: Console, started: float) -> None:
        self._console = console
        self._started = started
        self._depth: dict[str, int] = {}

    def show(self, event: AnyEvent) -> None:
        """Print one event; those that only a recording needs print nothing."""
        line = self._line(event)
        if line is not None:
            stamp = Text(f"{event.at - self._started:7.3f}s ", style="dim")
            name = Text(f"{event.plugin:<9.9} ", style="cyan")
            indent = Text("  " * self._depth.get(getattr(event, "invoke_id", ""), 0))
            self._console.print(stamp + name + indent + line, soft_wrap=True)

    def _line(self, event: AnyEvent) -> Text | None:
        if isinstance(event, transcript.InvokeStarted):
            return self._invoke(event)
        write = _LINES.get(type(event))
        return None if write is None else write(event)

    def _invoke(self, event: transcript.InvokeStarted) -> Text:
        depth = self._depth.get(event.parent, -1) + 1 if event.parent else 0
        self._depth[event.invoke_id] = depth
        arrow = "→ nested " if event.parent else "→ "
        return Text(f"{arrow}{event.plugin}.{event.tool}", style="bold")


def _invoke_end(event: transcript.InvokeEnded) -> Text:
    line = Text(f"← {event.plugin}.{event.tool} {event.outcome} in {event.ms:.1f} ms", style="bold")
    if event.calls_cap and (event.calls or event.storage_calls):
        line.append(
            f"  budget used: {event.calls} of {event.calls_cap} model calls, "
            f"{event.tokens_used:,} of {event.tokens_cap:,} tokens, "
            f"{event.storage_calls} storage calls",
            style="magenta",
        )
    return line


def _reverse_end(event: transcript.ReverseEnded) -> Text:
    line = Text(f"  ⇠ {event.method} ")
    line.append(event.verdict, style=_STYLES[event.verdict])
    if event.step:
        line.append(f" at step {event.step}", style="red")
    if event.code:
        line.append(f" {event.code} {clean(event.message)}")
    if event.tokens:
        line.append(f", {event.tokens:,} tokens")
    line.append(f", {event.ms:.1f} ms", style="dim")
    return line


def _frame(event: transcript.RunFrame) -> Text:
    frame = decode_any(event.frame)
    kind = frame.get("event", "?")
    rest = {key: value for key, value in frame.items() if key != "event"}
    content = rest.get("text") or msgspec.json.encode(rest).decode()
    return Text(f"    frame {kind}: {clean(str(content))}", style="blue")


def _negotiated(event: transcript.Negotiated) -> Text:
    keys = ", ".join(event.capabilities) or "no reverse calls"
    return Text(f"speaks protocol {event.version}: {keys}")


def _described(event: transcript.Described) -> Text:
    declared = ", ".join(event.host_capabilities) or "nothing"
    return Text(f"offers {', '.join(event.tools)}; declares {declared}")


def _tool(event: transcript.ToolExecuted) -> Text:
    verdict = "ok" if event.ok else f"failed: {event.reason}"
    return Text(f"  tool {event.name} for the run: {verdict}, {event.ms:.1f} ms")


def _exited(event: transcript.Exited) -> Text:
    how = f"after {event.rung}" if event.rung else "by itself"
    return Text(f"ended {how} with code {event.code}", style="red" * event.fault)


def _progress(event: transcript.Progress) -> Text:
    return Text(f"  progress {clean(bytes(event.params).decode())}", style="dim")


def _noise(event: transcript.Noise) -> Text:
    return Text(f"noise: {event.message} {clean(event.sample)}", style="yellow")


_LINES: Final[dict[type, Callable[[Any], Text]]] = {
    transcript.Spawned: lambda event: Text(f"started as process {event.pid}"),
    transcript.Negotiated: _negotiated,
    transcript.Described: _described,
    transcript.InvokeEnded: _invoke_end,
    transcript.ReverseEnded: _reverse_end,
    transcript.RunFrame: _frame,
    transcript.ToolExecuted: _tool,
    transcript.Progress: _progress,
    transcript.Noise: _noise,
    transcript.Stderr: lambda event: Text(f"says: {clean(event.line)}", style="dim"),
    transcript.Exited: _exited,
}


def clean(text: str) -> str:
    """Text from elsewhere on one line, without what would move a terminal's cursor."""
    flat = _UNPRINTABLE.sub(" ", text).strip()
    return flat if len(flat) <= MAX_TEXT else flat[: MAX_TEXT - 1] + "…"
