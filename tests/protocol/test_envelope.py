"""A line to a message and back: every kind, every spelling, every fault (R-03, R-10, R-13)."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from executa_protocol import envelope
from executa_protocol.codes import INVALID_REQUEST, PARSE_ERROR
from executa_protocol.envelope import Malformed, Message, parse, parse_oversized
from executa_protocol.errors import NotEncodable
from executa_protocol.framing import Oversized
from executa_protocol.limits import KIB, SAMPLE_BYTES
from executa_protocol.readings import STRICT, TOLERANT, Reader
from tests.protocol.reading import Listening


def line_of(**members: Any) -> bytes:
    """A line of these members beside the version."""
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


def message(line: bytes, reader: Reader = TOLERANT) -> Message:
    """The message of a line that is one."""
    found = parse(line, reader)
    assert isinstance(found, Message), found
    return found


def malformed(line: bytes, reader: Reader = TOLERANT) -> Malformed:
    """What is said of a line that is no message."""
    found = parse(line, reader)
    assert isinstance(found, Malformed), found
    return found


def content(raw: Raw | msgspec.UnsetType) -> Any:
    """A raw member, decoded."""
    assert raw is not UNSET
    return msgspec.json.decode(raw)


# --- What is a message ------------------------------------------------------------------------


def test_a_request_has_an_id_and_a_method() -> None:
    found = message(line_of(id=7, method="invoke", params={"a": 1}))
    assert (found.id, found.method, content(found.params)) == (7, "invoke", {"a": 1})
    assert found.result is found.error is found.pointer is UNSET


def test_a_notification_has_no_id() -> None:
    found = message(line_of(method="executa/progress", params=[]))
    assert (found.id, found.method) == (UNSET, "executa/progress")


def test_a_response_has_a_result_or_an_error_or_a_file_pointer() -> None:
    assert content(message(line_of(id=1, result=None)).result) is None
    assert content(message(line_of(id=1, error={"code": 1})).error) == {"code": 1}
    assert message(b'{"jsonrpc":"2.0","id":1,"__file_transport":"/a"}').pointer == "/a"


def test_absent_is_not_null() -> None:
    found = message(line_of(id=1, method="x"))
    assert found.params is UNSET
    assert content(message(line_of(id=1, method="x", params=None)).params) is None


def test_unknown_members_are_ignored() -> None:
    assert message(line_of(id=1, method="x", extra={"deep": [1]}, trace="t")).method == "x"


def test_content_stays_the_bytes_that_came() -> None:
    line = (
        b'{"jsonrpc": "2.0", "id": 1, "result": {"n": 1.10, "big": 12345678901234567890123, "a":1}}'
    )
    assert bytes(message(line).result) == b'{"n": 1.10, "big": 12345678901234567890123, "a":1}'  # type: ignore[arg-type]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b" \t\r\n"])
def test_line_ends_and_space_around_mean_nothing(end: bytes) -> None:
    assert message(b" \t" + line_of(id=1, method="x").rstrip() + end).id == 1


@pytest.mark.parametrize("line", [b"", b"\n", b"\r\n", b" \t \r\n", b" " * 5000 + b"\n"])
@pytest.mark.parametrize("reader", [TOLERANT, STRICT])
def test_blank_lines_are_nothing(line: bytes, reader: Reader) -> None:
    assert parse(line, reader) is None


def test_the_last_of_duplicate_keys_wins() -> None:
    found = message(b'{"jsonrpc":"2.0","id":1,"id":"b","method":"x","method":"y"}')
    assert (found.id, found.method) == ("b", "y")


def test_the_first_of_duplicate_keys_may_be_of_any_type() -> None:
    found = message(
        b'{"jsonrpc":1,"jsonrpc":"2.0","id":[],"id":7,"method":{},"method":"x"}', STRICT
    )
    assert (found.id, found.method) == (7, "x")
    assert malformed(b'{"jsonrpc":"2.0","id":7,"method":"x","method":5}').role == "request"


# --- Ids of every JSON type -------------------------------------------------------------------

PROPER = [0, 1, -1, 2**63, 2**64, -(2**200), "", "1", "p1", "żółć", " "]
IMPROPER = [None, True, False, 7.0, 1.5, 1e300]


@pytest.mark.parametrize("identity", PROPER)
@pytest.mark.parametrize("reader", [TOLERANT, STRICT])
def test_an_int_or_a_string_keeps_its_value_and_type(identity: Any, reader: Reader) -> None:
    for line in (line_of(id=identity, method="x"), line_of(id=identity, result=1)):
        found = message(line, reader).id
        assert (found, type(found)) == (identity, type(identity))


@pytest.mark.parametrize("identity", IMPROPER)
def test_a_request_with_another_scalar_is_tolerated_and_its_id_echoed(identity: Any) -> None:
    reader = Listening()
    found = message(line_of(id=identity, method="x"), reader).id
    assert (found, type(found)) == (identity, type(identity))
    assert reader.ids == ["WIRE-002"]
    refusal = malformed(line_of(id=identity, method="x"), STRICT)
    assert (refusal.code, refusal.role, refusal.id) == (INVALID_REQUEST, "request", identity)
    assert refusal.reason.startswith("WIRE-002: ")


@pytest.mark.parametrize("identity", IMPROPER)
@pytest.mark.parametrize("reader", [TOLERANT, STRICT])
def test_a_response_with_another_scalar_is_for_the_correlation_to_judge(
    identity: Any, reader: Reader
) -> None:
    found = message(line_of(id=identity, result=1), reader).id
    assert (found, type(found)) == (identity, type(identity))


@pytest.mark.parametrize("identity", [[], [1], {}, {"a": 1}])
def test_an_array_or_an_object_is_no_id(identity: Any) -> None:
    request = malformed(line_of(id=identity, method="x"))
    assert (request.code, request.role, request.id) == (INVALID_REQUEST, "request", None)
    response = malformed(line_of(id=identity, result=1))
    assert (response.role, response.id) == ("response", UNSET)


def test_a_response_without_an_id_is_no_notification() -> None:
    contents: list[dict[str, Any]] = [{"result": 1}, {"error": {}}, {"__file_transport": "/a"}]
    for members in contents:
        found = malformed(line_of(**members))
        assert (found.reason, found.role) == ("a response without an id", "response")


# --- Departures -------------------------------------------------------------------------------

DEPARTURES = [
    (b'{"id":1,"method":"x"}', "WIRE-001"),
    (b'{"method":"x"}', "WIRE-001"),
    (b'{"id":1,"result":1}', "WIRE-001"),
    (b'{"jsonrpc":"2.0","id":1,"result":1,"error":null}', "WIRE-003"),
    (b'{"jsonrpc":"2.0","id":1,"result":null,"error":null}', "WIRE-003"),
    (b'{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}', "WIRE-004"),
    (b'{"jsonrpc":"2.0","id":1,"__trans_file__":"/a"}', "WIRE-005"),
    (b'{"jsonrpc":"1.0","id":1,"method":"x"}', "WIRE-006"),
    (b'{"jsonrpc":2.0,"id":1,"method":"x"}', "WIRE-006"),
    (b'{"jsonrpc":2,"id":1,"result":1}', "WIRE-006"),
    (b'{"jsonrpc":null,"id":1,"method":"x"}', "WIRE-006"),
    (b'{"jsonrpc":["2.0"],"method":"x"}', "WIRE-006"),
]


@pytest.mark.parametrize(("line", "requirement"), DEPARTURES)
def test_a_departure_is_reported_or_refused_by_its_requirement(
    line: bytes, requirement: str
) -> None:
    reader = Listening()
    tolerated = message(line, reader)
    assert reader.ids == [requirement]
    refusal = malformed(line, STRICT)
    assert refusal.reason.startswith(f"{requirement}: ")
    assert (refusal.code, refusal.id) == (INVALID_REQUEST, tolerated.id)
    assert refusal.role == ("response" if tolerated.method is UNSET else "request")


def test_a_tolerated_null_is_taken_off() -> None:
    result = message(DEPARTURES[3][0])
    assert (result.error, content(result.result)) == (UNSET, 1)
    error = message(DEPARTURES[5][0])
    assert (error.result, content(error.error)) == (UNSET, {"code": 1, "message": "m"})


def test_an_old_pointer_is_read_as_a_pointer_and_the_right_name_goes_before_it() -> None:
    assert message(DEPARTURES[6][0]).pointer == "/a"
    both = b'{"jsonrpc":"2.0","id":1,"__trans_file__":"/old","__file_transport":"/new"}'
    assert message(both, STRICT).pointer == "/new"


def test_a_version_may_be_written_with_escapes() -> None:
    line = b'{"jsonrpc":"2\\u002e0","id":[],"method":"x"}'
    assert malformed(line, STRICT).reason.startswith("Expected `")  # the id, not the version


def test_several_departures_are_all_reported() -> None:
    reader = Listening()
    message(b'{"id":null,"method":"x"}', reader)
    message(b'{"jsonrpc":1,"id":1.5,"method":"x"}', reader)
    assert reader.ids == ["WIRE-001", "WIRE-002", "WIRE-006", "WIRE-002"]


# --- No message -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [5, None, True, ["x"], {"name": "x"}])
def test_a_method_of_another_type_is_an_invalid_request(method: Any) -> None:
    found = malformed(line_of(id=7, method=method))
    assert (found.code, found.role, found.id) == (INVALID_REQUEST, "request", 7)
    notification = malformed(line_of(method=method))
    assert (notification.role, notification.id) == ("request", UNSET)


def test_a_wrong_version_beside_another_fault_does_not_hide_it() -> None:
    found = malformed(b'{"jsonrpc":"1.0","id":7,"method":5}')
    assert (found.code, found.role, found.id) == (INVALID_REQUEST, "request", 7)
    assert "Expected `str`" in found.reason


def test_result_and_error_together_are_refused() -> None:
    for line in (
        line_of(id=7, result=1, error={"code": 1, "message": "m"}),
        line_of(id=7, result=0, error=False),
    ):
        found = malformed(line)
        assert (found.role, found.id, found.reason) == ("response", 7, "both a result and an error")


def test_neither_method_nor_result_nor_error_is_refused() -> None:
    found = malformed(line_of(id=7))
    assert (found.role, found.id) == ("", 7)
    assert found.reason == "neither a method nor a result nor an error"
    assert malformed(line_of()).id is UNSET
    assert malformed(b"{}").role == ""


@pytest.mark.parametrize("key", ["__file_transport", "__trans_file__"])
def test_a_file_pointer_is_never_taken_for_a_request(key: str) -> None:
    found = malformed(line_of(id=7, method="x", **{key: "/a"}))
    assert (found.role, found.id) == ("request", 7)
    assert found.reason == "a file pointer stands beside a method"


@pytest.mark.parametrize("key", ["__file_transport", "__trans_file__"])
@pytest.mark.parametrize("members", [{"result": 1}, {"error": {"code": 1, "message": ""}}])
def test_a_file_pointer_stands_alone(key: str, members: dict[str, Any]) -> None:
    found = malformed(line_of(id=7, **members, **{key: "/a"}))
    assert (found.role, found.id) == ("response", 7)
    assert found.reason == "a file pointer stands beside a result or an error"


def test_a_file_pointer_is_a_string() -> None:
    for key in ("__file_transport", "__trans_file__"):
        found = malformed(line_of(id=7, **{key: ["/a"]}))
        assert (found.code, found.role, found.id) == (INVALID_REQUEST, "response", 7)


def test_a_request_with_a_result_is_a_request() -> None:
    assert message(line_of(id=7, method="x", result=1)).method == "x"
    assert message(line_of(id=7, method="x", error=None)).method == "x"


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"x"}]',
        b'"text"',
        b"7",
        b"null",
        b"true",
        b"{",
        b'{"a"}',
        b"\xff\xfe",
        b"\x00",
        b"]" * 100_000,
        b"[" * 100_000,
        b"HTTP/1.1 200 OK",
    ],
)
def test_what_is_no_json_object_is_a_parse_error_of_nobody(line: bytes) -> None:
    found = malformed(line)
    assert (found.code, found.id, found.role) == (PARSE_ERROR, UNSET, "")
    assert found.sample == line[:SAMPLE_BYTES]


BAD_CONTENT = [
    b'"\xff"',
    b'"\\ud800"',
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"[" * 200 + b"]" * 200,
    b"[" * 100_000,
    b'"\x00"',
    b"01",
    b"9" * 5000,
]


@pytest.mark.parametrize("value", BAD_CONTENT)
@pytest.mark.parametrize("padding", [b"", b"x" * 4 * KIB])
def test_bad_content_spoils_its_line_and_its_owner_is_still_known(
    value: bytes, padding: bytes
) -> None:
    request = b'{"jsonrpc":"2.0","id":7,"method":"x","params":[%b,"%b"]}' % (value, padding)
    found = malformed(request)
    assert (found.code, found.role, found.id) == (PARSE_ERROR, "request", 7)
    response = b'{"jsonrpc":"2.0","id":"p7","result":[%b,"%b"]}' % (value, padding)
    found = malformed(response)
    assert (found.code, found.role, found.id) == (PARSE_ERROR, "", "p7")


@pytest.mark.parametrize("value", BAD_CONTENT)
@pytest.mark.parametrize("padding", [b"", b"x" * 4 * KIB])
def test_bad_content_in_a_member_that_nobody_reads_spoils_its_line_too(
    value: bytes, padding: bytes
) -> None:
    line = b'{"jsonrpc":"2.0","id":7,"method":"x","extra":%b,"padding":"%b"}' % (value, padding)
    assert malformed(line).code == PARSE_ERROR


def test_a_fault_after_a_wrong_member_is_a_parse_error() -> None:
    line = b'{"jsonrpc":"2.0","id":7,"method":5,"params":"%b"' % (b"x" * 4 * KIB)
    assert malformed(line).code == PARSE_ERROR


def test_the_size_is_without_the_lf() -> None:
    assert malformed(b"hello\n").size == malformed(b"hello").size == 5
    assert malformed(b"\nhello\n\n").size == 7


# --- Oversized --------------------------------------------------------------------------------


@pytest.mark.parametrize("identity", [7, "p7", 0, ""])
def test_an_oversized_line_is_known_by_its_head(identity: int | str) -> None:
    head = line_of(id=identity, method="x", params="y" * 3000)
    found = parse_oversized(Oversized(head[:2048], 9000), 4096)
    assert found == Malformed(
        code=INVALID_REQUEST,
        reason="the line has 9,000 bytes and the cap is 4,096",
        id=identity,
        role="request",
        sample=head[:SAMPLE_BYTES],
        size=9000,
        symbol="frame_too_large",
    )


def test_an_oversized_line_without_a_method_is_a_response() -> None:
    head = line_of(id=7, result="y" * 3000)[:2048]
    assert parse_oversized(Oversized(head, 9000), 4096).role == "response"
    assert parse_oversized(Oversized(b"x" * 2048, 9000), 4096).id is UNSET


# --- Writing ----------------------------------------------------------------------------------


def test_frames_are_written_with_the_id_early_and_nothing_that_is_absent() -> None:
    assert envelope.request_frame(1, "x") == b'{"jsonrpc":"2.0","id":1,"method":"x"}\n'
    assert (
        envelope.request_frame("p1", "x", b"{}")
        == b'{"jsonrpc":"2.0","id":"p1","method":"x","params":{}}\n'
    )
    assert envelope.notification_frame("x") == b'{"jsonrpc":"2.0","method":"x"}\n'
    assert envelope.notification_frame("x", b"1") == b'{"jsonrpc":"2.0","method":"x","params":1}\n'
    assert envelope.result_frame(None, b"null") == b'{"jsonrpc":"2.0","id":null,"result":null}\n'
    assert envelope.error_frame(1.5, b"{}") == b'{"jsonrpc":"2.0","id":1.5,"error":{}}\n'
    assert (
        envelope.pointer_frame("a", "/t/é")
        == '{"jsonrpc":"2.0","id":"a","__file_transport":"/t/é"}\n'.encode()
    )


@pytest.mark.parametrize("identity", [*PROPER, *IMPROPER, 10**4000])
def test_an_id_is_echoed_as_it_came(identity: Any) -> None:
    found = message(envelope.result_frame(identity, b"1")).id
    assert (found, type(found)) == (identity, type(identity))


@pytest.mark.parametrize("raw", [b"[1,\n2]", b"{}\n"])
def test_a_part_that_would_split_its_frame_is_refused(raw: bytes) -> None:
    with pytest.raises(NotEncodable, match="newline"):
        envelope.request_frame(1, "x", raw)
    with pytest.raises(NotEncodable, match="newline"):
        envelope.notification_frame("x", raw)
    with pytest.raises(NotEncodable, match="newline"):
        envelope.result_frame(1, raw)
    with pytest.raises(NotEncodable, match="newline"):
        envelope.error_frame(1, raw)


def test_names_with_newlines_are_escaped_and_lone_surrogates_refused() -> None:
    assert message(envelope.request_frame(1, "a\nb")).method == "a\nb"
    assert message(envelope.pointer_frame(1, "/a\nb")).pointer == "/a\nb"
    with pytest.raises(NotEncodable, match="not JSON"):
        envelope.request_frame(1, "\ud800")


# --- Anything ---------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
anything = scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.text(), scalars, max_size=2)
names = st.sampled_from(
    ["jsonrpc", "id", "method", "params", "result", "error", "__file_transport", "__trans_file__"]
)
objects = st.dictionaries(names, anything | st.just("2.0"), max_size=8)
lines = st.binary(max_size=60) | objects.map(lambda value: json.dumps(value).encode())


@given(lines)
def test_any_line_is_a_message_or_malformed_or_blank_and_nothing_is_raised(line: bytes) -> None:
    for reader in (TOLERANT, STRICT):
        found = parse(line, reader)
        if isinstance(found, Message):
            assert found.method is not UNSET or found.id is not UNSET
        elif isinstance(found, Malformed):
            assert found.code in (PARSE_ERROR, INVALID_REQUEST)
            assert found.reason
        else:
            assert not line.strip()


@given(lines)
def test_what_strict_mode_reads_tolerant_mode_reads_alike_and_without_findings(line: bytes) -> None:
    strict, reader = parse(line, STRICT), Listening()
    if isinstance(strict, Message):
        assert msgspec.json.encode(parse(line, reader)) == msgspec.json.encode(strict)
        assert reader.findings == []
