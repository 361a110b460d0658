"""Actions and sessions as a person reads them in a terminal.

Owns tables, colours of states and the lines of events. What comes from elsewhere is shown
without control characters, and never read as markup.
"""

import time
from collections.abc import Sequence
from typing import Any, Final, cast

from msgspec import Raw, UnsetType
from rich.console import Console
from rich.table import Table
from rich.text import Text

from executa_host.actions.interface import ActionPage, SessionPage
from executa_host.actions.records import (
    ActionRecord,
    ActionResult,
    ActionState,
    ActionView,
    EventRecord,
    SessionRecord,
)
from executa_host.cli import exits
from executa_host.cli.timeline import clean
from executa_protocol import codec
from executa_protocol.actions import TERMINAL, ResultStatus

_STATES: Final = {
    "completed": "green",
    "settled": "dim",
    "failed": "red",
    "expired": "red",
    "dead_lettered": "bold red",
    "cancelled": "yellow",
    "cancelling": "yellow",
    "pending_approval": "magenta",
    "waiting_for_human": "magenta",
}
_MINUTE: Final = 60
_DAY: Final = 86_400
_ROOMY: Final = 72


def state_text(state: str) -> Text:
    """A state in its colour."""
    return Text(state, style=_STATES.get(state, "cyan"))


def age(at_ms: int) -> str:
    """How long ago something was, in one number."""
    seconds = max(0, int(time.time() - at_ms / 1000))
    if seconds < 2 * _MINUTE:
        return f"{seconds} s"
    if seconds < 2 * _MINUTE * _MINUTE:
        return f"{seconds // _MINUTE} min"
    if seconds < 2 * _DAY:
        return f"{seconds // (_MINUTE * _MINUTE)} h"
    return f"{seconds // _DAY} d"


def show_actions(console: Console, page: ActionPage) -> None:
    """A page of a listing."""
    if not page.records:
        console.print("no actions", style="dim")
        return
    rows = [
        (
            Text(record.action_id),
            state_text(record.state),
            Text(clean(record.capability)),
            Text(age(record.accepted_at_ms)),
            Text(clean(record.principal)),
        )
        for record in page.records
    ]
    _print_table(console, ("action", "state", "capability", "age", "principal"), rows)
    _more(console, page.next_cursor)


def show_sessions(console: Console, page: SessionPage) -> None:
    """A page of a listing."""
    if not page.records:
        console.print("no sessions", style="dim")
        return
    rows = [
        (
            Text(record.session_id),
            state_text(record.state),
            Text(str(record.open_actions)),
            Text(age(record.created_at_ms)),
            *(Text(clean(each)) for each in (record.initiator, record.responder, record.label)),
        )
        for record in page.records
    ]
    headings = ("session", "state", "open", "age", "initiator", "responder", "label")
    _print_table(console, headings, rows)
    _more(console, page.next_cursor)


def show_action(console: Console, record: ActionRecord) -> None:
    """One action: what a person asks first."""
    head = Text(f"{record.action_id} ", style="bold")
    console.print(head + Text(clean(record.capability)) + " " + state_text(record.state))
    facts: list[tuple[str, str]] = [
        ("accepted", f"{age(record.accepted_at_ms)} ago by {record.principal}"),
        ("attempt", f"{record.attempt} of {record.max_attempts}"),
    ]
    if record.subject != record.principal:
        facts.append(("on behalf of", record.subject))
    if record.session_id:
        facts.append(("session", record.session_id))
    if not isinstance(record.approval, UnsetType):
        by = f" by {record.approval.decided_by}" if record.approval.decided_by else ""
        facts.append(("approval", f"{record.approval.status}{by}, of {record.approval.content}"))
    if not isinstance(record.cancellation, UnsetType):
        outcome = record.cancellation.outcome or "no outcome yet"
        facts.append(("cancel", f"asked by {record.cancellation.requested_by}: {outcome}"))
    if not isinstance(record.dead_letter, UnsetType):
        facts.append(("dead letter", record.dead_letter.reason))
        if record.dead_letter.redriven_as:
            facts.append(("redriven as", record.dead_letter.redriven_as))
    if record.redrive_of:
        facts.append(("redrive of", record.redrive_of))
    if not isinstance(record.last_error, UnsetType):
        facts.append(("last error", f"{record.last_error.code}: {record.last_error.message}"))
    for name, value in facts:
        console.print(Text(f"  {name:<13}", style="dim") + Text(clean(value)), soft_wrap=True)


def show_view(console: Console, view: ActionView) -> None:
    """One action with what was asked for beside it."""
    show_action(console, view.action)
    if not isinstance(view.action.input, UnsetType):
        console.print("input", style="dim")
        show_json(console, view.action.input)
    if not isinstance(view.chunks, UnsetType):
        for chunk in view.chunks:
            label = Text(f"  {chunk.sequence:>4} {chunk.kind} ", style="dim")
            console.print(label + Text(clean(bytes(chunk.data).decode())), soft_wrap=True)
    if not isinstance(view.receipts, UnsetType):
        for receipt in view.receipts:
            line = Text(f"  {receipt.number:>4} {receipt.kind} {receipt.digest}")
            console.print(line, soft_wrap=True)
    if not isinstance(view.action.result, UnsetType):
        show_result(console, view.action.result)


def show_result(console: Console, result: ActionResult) -> None:
    """A result: its output, or why there is none."""
    if not isinstance(result.output, UnsetType):
        show_json(console, result.output)
    elif not isinstance(result.error, UnsetType):
        where = f" at {result.error.path}" if result.error.path else ""
        text = f"{result.status}: {result.error.code}{where}: {clean(result.error.message)}"
        console.print(text, style="red", markup=False, soft_wrap=True)
    else:
        console.print(result.status, style="yellow", markup=False)


def show_session(console: Console, record: SessionRecord) -> None:
    """One session."""
    head = Text(f"{record.session_id} ", style="bold")
    console.print(head + state_text(record.state) + Text(f" {clean(record.label)}"))
    between = f"{record.initiator} → {record.responder}, {age(record.created_at_ms)} ago"
    console.print(Text(f"  {clean(between)}; {record.open_actions} open actions", style="dim"))


def show_json(console: Console, raw: Raw) -> None:
    """JSON of somebody else's, laid out."""
    value: Any = codec.decode_any(raw)
    if isinstance(value, str):
        console.print(clean(value), markup=False, soft_wrap=True)
    else:
        console.print_json(bytes(raw).decode())


def event_line(event: EventRecord) -> Text:
    """One event of a log as a line."""
    line = Text(time.strftime("%H:%M:%S ", time.localtime(event.at_ms / 1000)), style="dim")
    if event.type == "chunk" and not isinstance(event.chunk, UnsetType):
        label = Text(f"{event.chunk.kind:<9}", style="blue")
        return line + label + Text(f" {_chunk_text(event.chunk.data)}")
    subject = f" {event.action_id}" if event.type != "session" and event.action_id else ""
    reason = f" ({clean(event.reason)})" if event.reason else ""
    return (
        line + Text(f"{event.type:<9} ", style="dim") + state_text(event.state) + subject + reason
    )


def exit_code(record: ActionRecord, result: ActionResult | UnsetType | None) -> int:
    """Fine if it was completed; 1 if it ended otherwise, or has no result yet."""
    if isinstance(result, ActionResult):
        return exits.OK if result.status is ResultStatus.COMPLETED else exits.FAILED
    done = record.state is ActionState.COMPLETED
    return exits.OK if done or record.state not in TERMINAL else exits.FAILED


def _chunk_text(data: Raw) -> str:
    value: object = codec.decode_any(data)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        text = members.get("text") or members.get("message")
        if isinstance(text, str):
            return clean(text)
    return clean(bytes(data).decode())


def _print_table(console: Console, headings: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
    """Rows of which the first column, an id, is never broken: it is there to be copied.

    Where there is little room only id and state are shown.
    """
    shown = len(headings) if console.width >= _ROOMY else 2
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings[:shown]):
        table.add_column(heading, overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row[:shown])
    console.print(table)


def _more(console: Console, cursor: str) -> None:
    if cursor:
        console.print(f"more: --cursor {cursor}", style="dim", markup=False)
