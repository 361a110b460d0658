"""Actions, sessions and events as a terminal shows them."""

import io
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import Raw, structs
from rich.console import Console

from executa_host.actions.interface import ActionPage, SessionPage
from executa_host.actions.records import (
    ActionError,
    ActionRecord,
    ActionResult,
    ActionState,
    ActionView,
    Approval,
    ApprovalStatus,
    Cancellation,
    CancelOutcome,
    ChunkRecord,
    DeadLetter,
    EventRecord,
    ReceiptRecord,
    SessionRecord,
    SessionState,
)
from executa_host.actions.requests import Caller, Submission
from executa_host.cli import action_views as views
from executa_host.cli.watching import watch
from executa_protocol.actions import ResultStatus
from executa_protocol.chunks import ChunkKind
from executa_protocol.receipts import ReceiptKind
from tests.api.fake_records import CONTRACTS, record_of

ACTION = "act_01M8M4CR790MXT5SD88WA4EEN3"
NASTY = "\x1b[2J[red]\n\u202e"


class Screen:
    """A console of which a test sees what it shows."""

    def __init__(self, width: int = 100, *, terminal: bool = False) -> None:
        self._file = io.StringIO()
        self.console = Console(
            file=self._file, width=width, force_terminal=terminal, color_system=None
        )

    @property
    def text(self) -> str:
        return self._file.getvalue()


@pytest.fixture
def record() -> ActionRecord:
    contract = CONTRACTS["notebook.recall"]
    wanted = Submission(capability="notebook.recall")
    return record_of(ACTION, Caller(principal="ada"), wanted, contract, "d")


def test_an_action_shows_what_a_person_asks_first(record: ActionRecord) -> None:
    screen = Screen()
    approval = Approval(status=ApprovalStatus.APPROVED, content="c" * 64, decided_by="judge")
    asked = Cancellation(
        requested_by="eve", requested_at_ms=1, outcome=CancelOutcome.NEEDS_RECONCILIATION
    )
    full = structs.replace(
        record,
        state=ActionState.DEAD_LETTERED,
        subject="carol",
        session_id="ses_1",
        approval=approval,
        cancellation=asked,
        dead_letter=DeadLetter(
            reason="host_crashed", outcome_unknown=True, attempts=1, redriven_as="act_2"
        ),
        last_error=ActionError("LOST", f"gone {NASTY}"),
        redrive_of="act_0",
    )
    views.show_action(screen.console, full)
    for word in (
        "dead_lettered",
        "on behalf of",
        "carol",
        "ses_1",
        "approved by judge",
        "c" * 64,
        "asked by eve: needs_reconciliation",
        "host_crashed",
        "act_2",
        "act_0",
        "LOST: gone",
    ):
        assert word in screen.text.replace("\n", " ").replace("  ", " ")
    assert "\x1b" not in screen.text
    assert "[red]" in screen.text  # shown, not obeyed


def test_a_view_shows_input_chunks_receipts_and_result(record: ActionRecord) -> None:
    screen = Screen()
    chunk = ChunkRecord(ACTION, 1, 1, ChunkKind.DATA, 1, Raw(b'{"text": "tea"}'))
    receipt = ReceiptRecord(ACTION, 1, ReceiptKind.ACCEPTANCE, 1, "c", "p", "d" * 64, Raw(b"{}"))
    result = ActionResult(ACTION, ResultStatus.COMPLETED, output=Raw(b'"done"'))
    shown = structs.replace(record, input=Raw(b'{"query": "x"}'), result=result)
    views.show_view(screen.console, ActionView(shown, (chunk,), (receipt,)))
    for word in ("input", '"query": "x"', "1 data", "acceptance", "d" * 64, "done"):
        assert word in screen.text


@pytest.mark.parametrize(
    ("result", "told", "code"),
    [
        (ActionResult(ACTION, ResultStatus.COMPLETED, output=Raw(b"[1]")), "1", 0),
        (
            ActionResult(ACTION, ResultStatus.FAILED, error=ActionError("BAD", "no", path="$.x")),
            "failed: BAD at $.x: no",
            1,
        ),
        (ActionResult(ACTION, ResultStatus.CANCELLED), "cancelled", 1),
        (ActionResult(ACTION, ResultStatus.REQUIRES_HUMAN), "requires_human", 1),
    ],
)
def test_a_result_is_told_and_has_an_exit_code(
    record: ActionRecord, result: ActionResult, told: str, code: int
) -> None:
    screen = Screen()
    views.show_result(screen.console, result)
    assert told in screen.text
    assert views.exit_code(record, result) == code


def test_without_a_result_the_state_says_the_exit_code(record: ActionRecord) -> None:
    assert views.exit_code(record, None) == 0
    failed = structs.replace(record, state=ActionState.FAILED)
    assert views.exit_code(failed, None) == 1


def test_pages_show_more_and_nothing(record: ActionRecord) -> None:
    screen = Screen()
    views.show_actions(screen.console, ActionPage((record,), "next"))
    assert "more: --cursor next" in screen.text
    session = SessionRecord(
        session_id="ses_1",
        tenant="t",
        initiator="ada",
        responder="agent",
        state=SessionState.ACTIVE,
        created_at_ms=1,
        updated_at_ms=1,
        cursor="",
        floor="",
        label=NASTY,
    )
    views.show_sessions(screen.console, SessionPage((session,)))
    assert "ses_1" in screen.text
    assert "\x1b" not in screen.text
    empty = Screen()
    views.show_actions(empty.console, ActionPage(()))
    views.show_sessions(empty.console, SessionPage(()))
    assert empty.text.split() == ["no", "actions", "no", "sessions"]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (200_000, "2 d"), (-5, "0 s")],
)
def test_an_age_is_one_number(seconds: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_000_000.0)
    assert views.age((1_000_000 - seconds) * 1000) == told


async def _events() -> AsyncIterator[EventRecord]:
    def event(**members: Any) -> EventRecord:
        return EventRecord(cursor="c", at_ms=1, action_id=ACTION, **members)

    def chunk(kind: ChunkKind, data: bytes) -> EventRecord:
        return event(type="chunk", chunk=ChunkRecord(ACTION, 1, 1, kind, 1, Raw(data)))

    yield event(type="state", state="running", reason="retry")
    yield chunk(ChunkKind.PROGRESS, b'{"data": {"done": 1, "total": 4, "note": "reading"}}')
    yield chunk(ChunkKind.PROGRESS, b'{"data": {"done": 2}}')
    yield chunk(ChunkKind.PROGRESS, b"[1]")
    yield chunk(ChunkKind.DATA, b'{"text": "some text"}')
    yield chunk(ChunkKind.TOOL, b'{"name": "x.y"}')
    yield chunk(ChunkKind.END, b"{}")
    yield event(type="approval", state="approved")
    yield EventRecord(cursor="c", type="session", at_ms=1, session_id="ses_1", state="active")


async def test_following_prints_lines_where_there_is_no_terminal() -> None:
    screen = Screen()
    await watch(_events(), screen.console)
    kinds = [line.split()[1] for line in screen.text.splitlines()]
    assert kinds == [
        "state",
        "progress",
        "progress",
        "progress",
        "data",
        "tool",
        "approval",
        "session",
    ]
    assert "running" in screen.text
    assert "(retry)" in screen.text
    assert "some text" in screen.text


async def test_in_a_terminal_progress_moves_a_bar_and_prints_no_line() -> None:
    screen = Screen(terminal=True)
    await watch(_events(), screen.console)
    assert "some text" in screen.text
    assert "⠋ active" in screen.text  # the bar at the end: half, and the last state
    assert "progress" not in screen.text
