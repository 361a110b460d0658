"""The golden lines of framing, messages, handshake, methods, manifests and the gate."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from executa_protocol import codec, gate
from executa_protocol.envelope import Malformed, parse, parse_oversized
from executa_protocol.errors import DecodeFailure, ExecutaError, PeerViolation, StrictRefusal
from executa_protocol.framing import LineSplitter, Oversized
from executa_protocol.handshake import Negotiated, read_answer, read_offer
from executa_protocol.limits import MAX_LINE
from executa_protocol.manifest import ManifestError
from executa_protocol.manifest_reading import read_manifest
from executa_protocol.methods import METHODS, InvalidParams, refusal
from executa_protocol.methods.agent_results import read_history_result, read_run_result
from executa_protocol.methods.core import read_health_result
from executa_protocol.methods.files import read_download_url_result, read_upload_begin_result
from executa_protocol.methods.invoke import read_invoke_result
from executa_protocol.methods.sampling import read_sampling_result
from executa_protocol.nexus import Grants, Token
from executa_protocol.readings import Reader
from tests.protocol.golden import LINES, Row, chapters, data_of, exact, rows
from tests.protocol.reading import Listening

ELSEWHERE = ("actions", "filetransport", "frames", "sse")
"""Chapters that `test_golden_runs` runs."""


class NoMessage(PeerViolation):
    """A line that is no message, as an exception."""

    def __init__(self, found: Malformed) -> None:
        super().__init__(found.reason)
        self.found = found


def plain(value: Any) -> Any:
    """A struct as the JSON it is sent as."""
    return msgspec.json.decode(codec.encode(value))


# --- One reading for each chapter -------------------------------------------------------------


def read_framing(row: Row, reader: Reader) -> Any:
    stream = data_of(row)
    cap = row.get("given", {}).get("max_line", MAX_LINE)
    whole = _lines([stream], cap)
    assert _lines([stream[i : i + 1] for i in range(len(stream))], cap) == whole
    return whole


def _lines(chunks: list[bytes], cap: int) -> Any:
    splitter = LineSplitter(cap)
    lines = [_line(line, cap) for chunk in chunks for line in splitter.feed(chunk)]
    rest = splitter.eof()
    return {"lines": lines, "rest": None if rest is None else _line(rest, cap)}


def _line(line: bytes | Oversized, cap: int) -> Any:
    if isinstance(line, bytes):
        return line.removesuffix(b"\n").decode()
    found = parse_oversized(line, cap)
    return {"oversized": line.size, "id": found.id or None, "is_request": found.role == "request"}


def read_wire(row: Row, reader: Reader) -> Any:
    found = parse(data_of(row), reader)
    if isinstance(found, Malformed):
        raise NoMessage(found)
    if found is None:
        return {}
    decoded: Row = {}
    for member in ("id", "method", "params", "result", "error", "pointer"):
        value = getattr(found, member)
        if value is not UNSET:
            decoded[member] = codec.decode_any(value) if isinstance(value, Raw) else value
    return decoded


def outcome_of(found: Malformed) -> Row:
    """What a receiver does about a line that is no message (R-10, R-11)."""
    identity = None if found.id is UNSET else found.id
    answered = found.role == "request" and found.id is not UNSET
    fails = found.role != "request" and found.id is not UNSET
    return {
        "answer": {"id": identity, "code": found.code} if answered else None,
        "fails": identity if fails else None,
    }


def read_handshake(row: Row, reader: Reader) -> Any:
    if row["given"]["read"] == "offer":
        return {"offered": read_offer(data_of(row))}
    found = read_answer(data_of(row), reader)
    server = None if found.server is None else plain(found.server)
    return {"version": found.version, "options": found.options, "server": server}


RESULTS: dict[str, Callable[[bytes, Reader], Any]] = {
    "health": read_health_result,
    "invoke": read_invoke_result,
    "sampling/createMessage": read_sampling_result,
    "agent/session.run": read_run_result,
    "agent/session.history": read_history_result,
    "files/upload_begin": read_upload_begin_result,
    "files/download_url": read_download_url_result,
}


def read_methods(row: Row, reader: Reader) -> Any:
    method, part = row["given"]["method"], row["given"]["part"]
    if part == "result":
        return plain(RESULTS[method](data_of(row), reader))
    read: Any = METHODS[method].read
    return plain(read(Raw(data_of(row)), reader))


def error_of(row: Row, fault: Exception) -> Row:
    """The code and the path of what is wrong with params."""
    method = METHODS[row["given"]["method"]]
    assert isinstance(fault, DecodeFailure | StrictRefusal)
    path = fault.path if isinstance(fault, DecodeFailure) else ""
    return {"code": refusal(fault, method.invalid).code, "path": path}


def read_manifests(row: Row, reader: Reader) -> Any:
    fallback = row.get("given", {}).get("fallback_name")
    return plain(read_manifest(data_of(row), reader=reader, fallback_name=fallback))


def read_gate(row: Row, reader: Reader) -> Any:
    question = codec.decode_any(data_of(row))
    method, strict = METHODS[question["method"]], question["strict"]
    negotiated = Negotiated(question["version"], frozenset(question["keys"]))
    grants = msgspec.convert(question["grants"], Grants)
    token = msgspec.convert(question["token"], Token | None)
    steps = (
        gate.check_negotiated(method, negotiated, strict=strict),
        gate.check_manifest(method, question["declared"], strict=strict),
        gate.check_grant(method, grants),
        gate.check_token(method, token, question["now"]),
        gate.check_scope(method, question["scope"], token),
    )
    for refused in steps:
        if refused is not None:
            return {"code": refused.error.code, **plain(refused.error.data)}
    return {}


READINGS: dict[str, Callable[[Row, Reader], Any]] = {
    "framing": read_framing,
    "wire": read_wire,
    "handshake": read_handshake,
    "methods": read_methods,
    "manifest": read_manifests,
    "gate": read_gate,
}


# --- The tests --------------------------------------------------------------------------------


@pytest.mark.parametrize("row", rows(*READINGS))
def test_a_golden_line_is_read_as_it_says(row: Row) -> None:
    reader = Listening()
    if row["reading"] == "invalid":
        refused_as_it_says(row, reader)
        return
    decoded = READINGS[row["chapter"]](row, reader)
    assert exact(decoded) == exact(row["decoded"])
    assert (list(dict.fromkeys(reader.ids)) or None) == row["diagnostic"]


@pytest.mark.parametrize("row", rows(*READINGS))
def test_strict_mode_refuses_what_is_tolerated_and_reads_the_valid_alike(row: Row) -> None:
    reader = Reader(strict=True)
    if row["reading"] == "valid":
        assert exact(READINGS[row["chapter"]](row, reader)) == exact(row["decoded"])
    elif row["reading"] == "tolerated":
        with pytest.raises(PeerViolation, match=row["diagnostic"][0]):
            READINGS[row["chapter"]](row, reader)
    elif row["chapter"] != "manifest":  # there a departure is one more fault
        refused_as_it_says(row, reader)


def refused_as_it_says(row: Row, reader: Reader) -> None:
    """Read a line that is invalid, and compare what is said of it."""
    with pytest.raises(ExecutaError) as caught:
        READINGS[row["chapter"]](row, reader)
    fault = caught.value
    if isinstance(fault, NoMessage):
        assert exact(outcome_of(fault.found)) == exact(row["outcome"])
    elif isinstance(fault, ManifestError):
        assert [found.path for found in fault.faults] == row["faults"]
    elif row["chapter"] == "methods" and row["given"]["part"] == "params":
        assert isinstance(fault, InvalidParams)
        assert error_of(row, fault) == row["error"]


@pytest.mark.parametrize("chapter", READINGS)
def test_golden_lines_have_the_documented_members_and_unique_names(chapter: str) -> None:
    lines: list[Row] = [param.values[0] for param in rows(chapter)]
    own = {"wire": {"outcome"}, "methods": {"error"}, "manifest": {"faults"}}.get(chapter, set())
    for row in lines:
        invalid = row["reading"] == "invalid"
        members = {"name", "chapter", "reading", "decoded", "diagnostic", "why"}
        assert row.keys() - members - {"input", "input_b64", "given"} <= (own if invalid else set())
        assert members <= row.keys()
        assert ("input" in row) != ("input_b64" in row)
        assert row["chapter"] == chapter
        assert row["reading"] in {"valid", "tolerated", "invalid"}
        assert (row["decoded"] is None) == invalid
        assert (row["diagnostic"] is not None) == (row["reading"] == "tolerated")
        assert row["why"] or not invalid
    names = [row["name"] for row in lines]
    assert len(set(names)) == len(names)


def test_every_chapter_is_run_and_documented() -> None:
    readme = (LINES / "README.md").read_text(encoding="utf-8")
    assert chapters() == {*READINGS, *ELSEWHERE}
    assert all(f"**`{chapter}`**" in readme for chapter in chapters())


def test_every_requirement_of_the_wire_and_the_handshake_has_a_golden_line() -> None:
    told = {
        requirement
        for param in rows(*READINGS)
        for requirement in param.values[0]["diagnostic"] or ()
    }
    # WIRE-007 needs a call in flight, and WIRE-008 the end of a stream.
    wanted = {f"WIRE-{n:03}" for n in range(1, 7)} | {f"HAND-{n:03}" for n in range(1, 6)}
    assert wanted <= told
