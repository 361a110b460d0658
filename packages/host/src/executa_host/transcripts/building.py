"""Makes items of the lines of one part, and puts each where it belongs.

A reverse call is its request and its answer; the verdict of the gate stands on the line just
before the answer. What belongs to no invoke belongs to its process, and progress is shown as the
frame that brought it.
"""

from typing import Any, Final, cast

import msgspec
from msgspec import Raw, UnsetType

from executa_host.transcripts.items import Item, Status
from executa_host.transcripts.reading import Line
from executa_protocol import codec, transcript
from executa_protocol.errors import DecodeFailure

_AGENT_RUN: Final = "agent/session.run"
_SHOWN: Final = 400
"""Characters of a frame that its detail shows."""

Whose = tuple[str, str, int]
"""A process: user, plugin, launch."""


class Builder:
    """Builds the items of one part."""

    def __init__(self, part: int, offset: float) -> None:
        self.roots: list[Item] = []
        self.now = offset
        self._part = part
        self._offset = offset
        self._processes: dict[tuple[str, str], Item] = {}
        self._actions: dict[str, Item] = {}
        self._action_of: dict[str, Item] = {}  # by invoke
        self._invokes: dict[str, Item] = {}
        self._running: dict[str, Item] = {}
        self._calls: dict[tuple[Whose, bytes], Item] = {}  # reverse calls, by request id
        self._runs: dict[str, list[Item]] = {}  # agent runs under way, by invoke
        self._verdicts: dict[Whose, tuple[transcript.ReverseEnded, int]] = {}

    def take(self, line: Line) -> None:
        """The next line."""
        self.now = max(self.now, self._offset + line.stamp.t)
        event = line.event
        if event is None:
            self._add(None, line, "other", "an event of a later version")
            return
        handle = _HANDLERS.get(type(event))
        if handle is not None:
            handle(self, line, event)

    def finish(self) -> None:
        """Nothing more comes: what has not ended stays open."""
        waiting = [*self._running.values(), *self._calls.values(), *self._processes.values()]
        for item in waiting:
            if item.status in ("", "open"):
                item.status, item.end = "open", self.now
        for action in self._actions.values():
            _span(action)

    # --- Where things go -----------------------------------------------------------------

    def _item(self, line: Line, kind: Any, label: str, **members: Any) -> Item:
        event = cast("transcript.AnyEvent", line.event)
        return Item(
            kind=kind,
            label=label,
            start=self.now,
            end=self.now,
            plugin=event.plugin if line.event is not None else "",
            user_id=event.user_id if line.event is not None else "",
            launch=line.stamp.launch,
            part=self._part,
            rows=[line.row],
            **members,
        )

    def _add(self, parent: Item | None, line: Line, kind: Any, label: str, **members: Any) -> Item:
        item = self._item(line, kind, label, **members)
        (self.roots if parent is None else parent.children).append(item)
        return item

    def _process(self, event: transcript.AnyEvent) -> Item | None:
        return self._processes.get((event.user_id, event.plugin))

    def _home(self, event: transcript.AnyEvent, invoke_id: str) -> Item | None:
        return self._invokes.get(invoke_id) or self._process(event)

    def _run_home(self, event: transcript.AnyEvent, invoke_id: str) -> Item | None:
        runs = self._runs.get(invoke_id)
        return runs[-1] if runs else self._home(event, invoke_id)

    # --- Processes -------------------------------------------------------------------------

    def spawned(self, line: Line, event: transcript.Spawned) -> None:
        name = f"{event.plugin} process {event.launch}"
        item = self._add(None, line, "process", name, detail=f"pid {event.pid}")
        self._processes[event.user_id, event.plugin] = item

    def exited(self, line: Line, event: transcript.Exited) -> None:
        process = self._processes.pop((event.user_id, event.plugin), None)
        how = f"after {event.rung}" if event.rung else "by itself"
        text = f"exit code {event.code} {how}"
        if process is None:
            self._add(None, line, "state", text)
            return
        process.end = self.now
        process.status = "failed" if event.fault else "ok"
        process.detail = f"{process.detail}, {text}"
        process.rows.append(line.row)

    def negotiated(self, line: Line, event: transcript.Negotiated) -> None:
        keys = ", ".join(event.capabilities) or "no capabilities"
        self._add(self._process(event), line, "state", f"protocol {event.version}", detail=keys)

    def described(self, line: Line, event: transcript.Described) -> None:
        declared = ", ".join(event.host_capabilities) or "nothing"
        tools = ", ".join(event.tools)
        detail = f"{tools}; declares {declared}"
        self._add(self._process(event), line, "state", "manifest", detail=detail)

    def state(self, line: Line, event: transcript.StateChanged) -> None:
        bad: Status = "failed" if event.state in ("unhealthy", "restarting", "faulted") else ""
        parent = self._process(event)
        label = event.state if parent is not None else f"{event.plugin} {event.state}"
        self._add(parent, line, "state", label, detail=event.reason, status=bad)

    def stderr(self, line: Line, event: transcript.Stderr) -> None:
        self._add(self._process(event), line, "stderr", "stderr", detail=event.line)

    def noise(self, line: Line, event: transcript.Noise) -> None:
        detail = f"{event.message} {event.sample}".strip()
        status: Status = "" if event.kind in ("tolerated", "fallback") else "failed"
        parent = self._process(event)
        self._add(parent, line, "noise", event.kind, detail=detail, status=status)

    # --- Actions and invokes -----------------------------------------------------------------

    def action(self, line: Line, event: transcript.ActionAttempt) -> None:
        item = self._actions.get(event.action_id)
        if item is None:
            item = self._add(None, line, "action", event.action_id)
            self._actions[event.action_id] = item
        else:
            item.rows.append(line.row)
        item.detail = f"attempt {event.attempt}"
        self._action_of[event.invoke_id] = item

    def invoke(self, line: Line, event: transcript.InvokeStarted) -> None:
        parent = self._action_of.get(event.invoke_id)
        if event.parent:
            parent = self._run_home(event, event.parent)
        item = self._add(parent, line, "invoke", f"{event.plugin}.{event.tool}")
        item.invoke_id = event.invoke_id
        self._invokes[event.invoke_id] = self._running[event.invoke_id] = item

    def invoke_end(self, line: Line, event: transcript.InvokeEnded) -> None:
        item = self._running.pop(event.invoke_id, None)
        if item is None:
            return
        item.end = self.now
        item.status = "ok" if event.outcome == "ok" else "failed"
        item.detail = event.outcome
        item.rows.append(line.row)

    def cancel(self, line: Line, event: transcript.CancelEnded) -> None:
        home = self._home(event, event.invoke_id)
        detail = f"{event.outcome}{f': {event.reason}' if event.reason else ''}"
        self._add(home, line, "cancel", "cancelled", detail=detail)

    # --- Reverse calls -------------------------------------------------------------------------

    def reverse_end(self, line: Line, event: transcript.ReverseEnded) -> None:
        whose = (event.user_id, event.plugin, line.stamp.launch)
        self._verdicts[whose] = (event, line.row)

    def run_frame(self, line: Line, event: transcript.RunFrame) -> None:
        home = self._run_home(event, event.invoke_id)
        members = _members(event.frame)
        label = f"frame {members.get('event', '?')}"
        self._add(home, line, "run", label, detail=_short(bytes(event.frame)))

    def tool(self, line: Line, event: transcript.ToolExecuted) -> None:
        home = self._run_home(event, event.invoke_id)
        status: Status = "ok" if event.ok else "failed"
        item = self._add(home, line, "tool", f"tool {event.name}", status=status)
        item.detail = event.reason
        item.start = max(0.0, item.end - event.ms / 1000)

    # --- Frames --------------------------------------------------------------------------------

    def frame(self, line: Line, event: transcript.Frame) -> None:
        whose = (event.user_id, event.plugin, line.stamp.launch)
        number = b"" if isinstance(event.id, UnsetType) else bytes(event.id)
        home = self._home(event, event.invoke_id)
        if event.kind == "request" and event.direction == "out":
            home = self._add(home, line, "reverse", event.method, status="open")
            home.invoke_id = event.invoke_id
            self._calls[whose, number] = home
            if event.method == _AGENT_RUN:
                self._runs.setdefault(event.invoke_id, []).append(home)
        elif event.direction == "in" and event.kind in ("response", "error"):
            home = self._answered(line, event, whose, number) or home
        if event.method == "invoke" and home is not None and home.kind == "invoke":
            home.rows.append(line.row)
        name = {"other": "unreadable", "notification": event.method}.get(event.kind, event.kind)
        label = "response file" if event.file else name
        if home is None or home.kind == "process":
            label = f"{event.method} {label}".strip() if event.kind != "notification" else label
        item = self._add(home, line, "frame", label, arrow="→" if event.direction == "in" else "←")
        item.detail = f"{event.bytes:,} B {_content(event)}"
        item.invoke_id = event.invoke_id
        if event.kind == "error":
            item.status = "failed"

    def _answered(
        self, line: Line, event: transcript.Frame, whose: Whose, number: bytes
    ) -> Item | None:
        item = self._calls.pop((whose, number), None)
        verdict = self._verdicts.pop(whose, None)
        if item is None:
            return None
        item.end = self.now
        item.rows.append(line.row)
        item.status = "failed" if event.kind == "error" else "ok"
        if verdict is not None and verdict[0].method == item.label:
            ended, row = verdict
            item.rows.append(row)
            item.status = "ok" if ended.verdict == "served" else ended.verdict
            item.detail = _said(ended)
        runs = self._runs.get(item.invoke_id, [])
        if item in runs:
            runs.remove(item)
        return item


def _said(event: transcript.ReverseEnded) -> str:
    words = [event.verdict]
    if event.step:
        words.append(f"at step {event.step}")
    if event.code:
        words.append(f"{event.code} {event.symbol}: {event.message}")
    if event.tokens:
        words.append(f"{event.tokens:,} tokens")
    return " ".join(words)


def _content(event: transcript.Frame) -> str:
    if event.sha256:
        return f"too long to be kept, sha256 {event.sha256[:12]}"
    if isinstance(event.line, Raw):
        return _short(bytes(event.line))
    return "" if isinstance(event.text, UnsetType) else event.text[:_SHOWN]


def _short(data: bytes) -> str:
    return data[: 4 * _SHOWN].decode(errors="ignore")[:_SHOWN]


def _members(raw: Raw) -> dict[str, Any]:
    try:
        value: object = codec.decode_any(raw)
    except (DecodeFailure, msgspec.DecodeError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _span(action: Item) -> None:
    """An action lasts from its first attempt to the end of its last, and ended as that did."""
    if action.children:
        last = action.children[-1]
        action.end = max(child.end for child in action.children)
        action.status = last.status


_HANDLERS: Final[dict[type, Any]] = {
    transcript.Spawned: Builder.spawned,
    transcript.Exited: Builder.exited,
    transcript.Negotiated: Builder.negotiated,
    transcript.Described: Builder.described,
    transcript.StateChanged: Builder.state,
    transcript.Stderr: Builder.stderr,
    transcript.Noise: Builder.noise,
    transcript.ActionAttempt: Builder.action,
    transcript.InvokeStarted: Builder.invoke,
    transcript.InvokeEnded: Builder.invoke_end,
    transcript.CancelEnded: Builder.cancel,
    transcript.ReverseEnded: Builder.reverse_end,
    transcript.RunFrame: Builder.run_frame,
    transcript.ToolExecuted: Builder.tool,
    transcript.Frame: Builder.frame,
}
