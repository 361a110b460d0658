"""The golden lines of frames, server-sent events, file transport and durable work."""

import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from executa_protocol import actions, canonical, chunks, ids, receipts, sessions
from executa_protocol.envelope import Message, parse
from executa_protocol.errors import (
    DecodeFailure,
    ExecutaError,
    PeerViolation,
    StrictRefusal,
    UsageError,
)
from executa_protocol.filetransport import (
    FileTransportFault,
    check_content,
    check_opened,
    check_pointer,
)
from executa_protocol.normaliser import FrameNormaliser
from executa_protocol.readings import Reader
from executa_protocol.sse import SseEvent, SseParser
from tests.protocol.golden import Row, data_of, exact, rows
from tests.protocol.reading import Listening

CHAPTERS = ("frames", "sse", "filetransport", "actions")


# --- One reading for each chapter ---------------------------------------------------------


def read_frames(row: Row, reader: Reader) -> Any:
    normaliser = FrameNormaliser(reader)
    given = [frame for raw in data_of(row).split(b"\n") for frame in normaliser.feed(raw)]
    failure = normaliser.failure
    return {
        "frames": [msgspec.json.decode(frame.raw) for frame in given],
        "failure": failure and {"code": failure.code, "message": failure.message},
        "ended": normaliser.ended,
    }


def read_sse(row: Row, reader: Reader) -> Any:
    stream = data_of(row)
    whole = _stream(row, [stream])
    assert _stream(row, [stream[i : i + 1] for i in range(len(stream))]) == whole
    return whole


def _stream(row: Row, pieces: list[bytes]) -> Any:
    parser = SseParser(**row.get("given", {}))
    events: list[SseEvent] = []
    for piece in pieces:
        events += parser.feed(piece)
    return {
        "events": [
            {"type": event.type, "data": event.text, "id": event.id, "retry": event.retry}
            for event in events
        ],
        "last_event_id": parser.last_event_id,
        "retry": parser.retry,
    }


KINDS = {
    "regular": stat.S_IFREG,
    "fifo": stat.S_IFIFO,
    "directory": stat.S_IFDIR,
    "socket": stat.S_IFSOCK,
}


@dataclass
class Status:
    """What fstat told."""

    st_mode: int
    st_uid: int
    st_size: int


def read_filetransport(row: Row, reader: Reader) -> Any:
    given = row["given"]
    file = given["file"]
    pointer = parse(data_of(row), reader)
    if not isinstance(pointer, Message):  # a strict refusal, or nothing to follow
        reason = pointer.reason if pointer is not None else "blank"
        raise FileTransportFault(reason)
    check_pointer(pointer)
    status = Status(KINDS[file["kind"]], 1000 if file["owner"] == "host" else 0, file["size"])
    check_opened(status, file["real_path"], given["allowed"], 1000, given["cap"])
    message = check_content(given["content"].encode(), pointer.id, reader)
    decoded: Row = {"id": message.id}
    for member in ("result", "error"):
        raw = getattr(message, member)
        if raw is not msgspec.UNSET:
            decoded[member] = msgspec.json.decode(raw)
    return decoded


def move_action(question: Row) -> Row:
    old, new = (actions.ActionState(question[member]) for member in ("old", "new"))
    return {"attempt_rises_by": actions.check_move(old, new, question["reason"])}


def move_session(question: Row) -> Row:
    old, new = (sessions.SessionState(question[member]) for member in ("old", "new"))
    sessions.check_move(old, new)
    return {}


def view(question: Row) -> Row:
    return {"state": sessions.view(map(actions.ActionState, question["actions"]))}


def result(question: Row) -> Row:
    state = actions.ActionState(question["state"])
    unknown = question["outcome_unknown"]
    return {"status": actions.result_status(state, outcome_unknown=unknown)}


def cancel(question: Row) -> Row:
    outcome = actions.cancel_outcome(
        answered=question["answered"],
        acknowledged=question["acknowledged"],
        written=question["written"],
        effect=actions.Effect(question["effect"]),
    )
    return {"outcome": outcome, "state": actions.state_after_cancel(outcome)}


def canonical_encoding(question: Row) -> Row:
    text = question["text"].encode()
    return {"canonical": canonical.canonical(text).decode(), "sha256": canonical.digest(text)}


def identity(question: Row) -> Row:
    text = question["id"]
    if not (ids.is_action_id(text) or ids.is_session_id(text)):
        msg = "no id"
        raise UsageError(msg)
    return {"made_at_ms": round(ids.made_at(text) * 1000)}


def chunk_order(question: Row) -> Row:
    follower = chunks.ChunkFollower()
    last: chunks.Chunk | None = None
    for chunk in msgspec.convert(question["chunks"], list[Row]):
        raw = msgspec.json.encode(chunk)
        new = msgspec.json.decode(raw, type=chunks.Chunk)
        chunks.check_append(last, new)
        follower.take(new)
        last = new
    return {"ended": follower.ended, "attempt": follower.attempt}


def receipt_chain(question: Row) -> Row:
    chain = msgspec.convert(question["receipts"], list[receipts.Receipt])
    receipts.check_chain(chain)
    return {"count": len(chain)}


QUESTIONS: dict[str, Callable[[Row], Row]] = {
    "move_action": move_action,
    "move_session": move_session,
    "view": view,
    "result": result,
    "cancel": cancel,
    "canonical": canonical_encoding,
    "id": identity,
    "chunks": chunk_order,
    "receipts": receipt_chain,
}


def read_actions(row: Row, reader: Reader) -> Any:
    question = msgspec.json.decode(data_of(row))
    return QUESTIONS[question["op"]](question)


READINGS: dict[str, Callable[[Row, Reader], Any]] = {
    "frames": read_frames,
    "sse": read_sse,
    "filetransport": read_filetransport,
    "actions": read_actions,
}


# --- The tests ----------------------------------------------------------------------------


@pytest.mark.parametrize("row", rows(*CHAPTERS))
def test_a_golden_line_is_read_as_it_says(row: Row) -> None:
    reader = Listening()
    if row["reading"] == "invalid":
        with pytest.raises(ExecutaError):
            READINGS[row["chapter"]](row, reader)
        return
    decoded = READINGS[row["chapter"]](row, reader)
    assert exact(decoded) == exact(row["decoded"])
    assert (reader.ids or None) == row["diagnostic"]


@pytest.mark.parametrize("row", rows(*CHAPTERS))
def test_strict_mode_refuses_what_is_tolerated_and_reads_the_valid_alike(row: Row) -> None:
    reading = READINGS[row["chapter"]]
    if row["reading"] == "valid":
        assert exact(reading(row, Reader(strict=True))) == exact(row["decoded"])
    elif row["reading"] == "tolerated":
        with pytest.raises(PeerViolation, match=row["diagnostic"][0]) as caught:
            reading(row, Reader(strict=True))
        assert isinstance(caught.value, StrictRefusal | FileTransportFault)
    else:
        with pytest.raises((DecodeFailure, PeerViolation, UsageError)):
            reading(row, Reader(strict=True))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_golden_lines_have_the_documented_members_and_unique_names(chapter: str) -> None:
    lines = [param.values[0] for param in rows(chapter)]
    for row in lines:
        assert ("input" in row) != ("input_b64" in row)
        assert row["chapter"] == chapter
        assert row["reading"] in {"valid", "tolerated", "invalid"}
        assert (row["decoded"] is None) == (row["reading"] == "invalid")
        assert (row["diagnostic"] is not None) == (row["reading"] == "tolerated")
        assert row["why"] or row["reading"] != "invalid"
    names = [row["name"] for row in lines]
    assert len(set(names)) == len(names)
