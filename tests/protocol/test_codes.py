"""The table of error codes: complete, unambiguous, and right about which exception it means."""

import msgspec
import pytest

from executa_protocol import codes
from executa_protocol.codes import TABLE, ErrorObject, by_number, by_symbol, find, rpc_error
from executa_protocol.errors import (
    AgentError,
    EmbeddingsError,
    ExecutaError,
    ImageError,
    RpcError,
    SamplingError,
    StorageError,
    UploadError,
    UsageError,
)

SEED_AGENT_CODES = {
    -32041: "AGENT_NOT_GRANTED",
    -32042: "AGENT_INVALID_SUBMODE",
    -32043: "AGENT_FIXED_REQUIRES_CLIENT_ID",
    -32044: "AGENT_UNKNOWN_SESSION",
    -32045: "AGENT_INVALID_UUID",
    -32046: "AGENT_NEXUS_ERROR",
    -32047: "AGENT_RUN_TOO_LARGE",
    -32048: "AGENT_TOOL_NOT_GRANTED",
}

CHAPTER_RANGES = {
    "sampling": range(-32010, -32000),
    "app-session": range(-32018, -32010),
    "storage": range(-32030, -32020),
    "agent": range(-32048, -32040),
    "credentials": range(-32064, -32060),
    "video": range(-32128, -32119),
    "audio": range(-32147, -32139),
    "upload": range(-32213, -32200),
    "embeddings": range(-32508, -32500),
    "web": range(-32528, -32520),
}


def test_the_agent_rows_are_those_of_the_seed() -> None:
    """Seed agent-sessions, Error codes."""
    rows = {row.number: row.symbol for row in TABLE if row.chapter == "agent"}
    assert rows == SEED_AGENT_CODES


def test_the_two_lower_case_symbols_of_the_seed_are_kept() -> None:
    """Seed lifecycle, Manifest declarations vs. runtime capabilities."""
    assert by_symbol("SAMPLING_NOT_NEGOTIATED").symbol == "not_negotiated"
    assert by_symbol("STORAGE_NOT_GRANTED").symbol == "not_granted"


@pytest.mark.parametrize("chapter", CHAPTER_RANGES)
def test_a_chapter_stays_inside_its_numbers(chapter: str) -> None:
    numbers = [row.number for row in TABLE if row.chapter == chapter]
    assert numbers
    assert all(number in CHAPTER_RANGES[chapter] for number in numbers)


def test_a_number_belongs_to_one_chapter() -> None:
    for row in TABLE:
        assert {other.chapter for other in by_number(row.number)} == {row.chapter}


def test_names_are_unique_and_symbols_are_unique_within_a_chapter() -> None:
    assert len({row.name for row in TABLE}) == len(TABLE)
    assert len({(row.chapter, row.symbol) for row in TABLE}) == len(TABLE)


def test_each_advice_is_one_sentence() -> None:
    for row in TABLE:
        assert row.advice.endswith("."), row.name
        assert ". " not in row.advice, row.name
        assert row.source


def test_each_number_constant_is_the_number_of_the_row_of_its_name() -> None:
    constants = {
        name: value
        for name, value in vars(codes).items()
        if name.isupper() and isinstance(value, int) and name != "CALL_ENDED"
    }
    assert constants
    for name, number in constants.items():
        assert by_symbol(name).number == number
    assert {row.symbol for row in by_number(codes.CALL_ENDED)} >= {"INVOKE_TIMEOUT"}


def test_a_symbol_of_one_chapter_is_found_as_it_stands_on_the_wire() -> None:
    assert by_symbol("pending_upload").number == codes.STORAGE_UPSTREAM_ERROR
    assert by_symbol("forbidden_scope").number == codes.STORAGE_NOT_GRANTED


def test_a_symbol_that_chapters_share_must_be_asked_for_by_name() -> None:
    with pytest.raises(UsageError, match="shared by several chapters"):
        by_symbol("NOT_GRANTED")


def test_an_unknown_symbol_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="not in the table"):
        by_symbol("NO_SUCH_THING")


def test_an_unknown_number_has_no_rows() -> None:
    assert by_number(-1) == ()
    assert find(-1, "NOT_GRANTED") is None


def test_the_symbol_decides_among_rows_of_one_number() -> None:
    assert find(-32602, "UNKNOWN_INVOKE_CONTEXT") is by_symbol("UNKNOWN_INVOKE_CONTEXT")
    assert find(-32602) is by_symbol("INVALID_PARAMS")
    assert find(-32021, "NOT_GRANTED") is by_symbol("STORAGE_NOT_GRANTED")


def test_the_number_decides_where_sdks_have_other_names() -> None:
    """The field's SDKs call -32045 QUOTA_EXCEEDED; the seed's name holds."""
    assert find(-32045, "QUOTA_EXCEEDED") is by_symbol("AGENT_INVALID_UUID")


def test_the_symbol_wins_over_a_shifted_upload_number() -> None:
    assert find(-32206, "MIME_REJECTED") is by_symbol("UPLOAD_MIME_REJECTED")
    assert find(-32206, "no such") is not None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (-32001, SamplingError),
        (-32018, SamplingError),
        (-32044, AgentError),
        (-32021, StorageError),
        (-32104, ImageError),
        (-32311, ImageError),
        (-32201, UploadError),
        (-32501, EmbeddingsError),
        (-32061, RpcError),
        (-32601, RpcError),
        (12345, RpcError),
    ],
)
def test_an_error_answer_becomes_the_exception_of_its_chapter(
    code: int, kind: type[RpcError]
) -> None:
    error = rpc_error(code, "why", {"errorCode": "X"})
    assert type(error) is kind
    assert (error.code, error.message, error.symbol) == (code, "why", "X")
    assert isinstance(error, ExecutaError)


def test_one_except_clause_covers_sampling_and_agent_errors() -> None:
    """Seed agent-sessions, Error codes."""
    with pytest.raises(SamplingError):
        raise rpc_error(codes.AGENT_RUN_TOO_LARGE, "too many frames")


def test_an_error_is_built_with_its_symbol_and_what_is_missing() -> None:
    error = codes.wire_error("SAMPLING_NOT_NEGOTIATED", missing="llm.sample", path=None)
    assert error.code == codes.SAMPLING_NOT_NEGOTIATED
    assert error.message.startswith("not_negotiated: ")
    assert error.data == {"errorCode": "not_negotiated", "missing": "llm.sample"}


def test_an_error_takes_a_message_and_a_row() -> None:
    error = codes.wire_error(by_symbol("PLUGIN_GONE"), "it crashed")
    assert error == ErrorObject(-32000, "it crashed", {"errorCode": "PLUGIN_GONE"})


def test_an_error_without_data_has_no_data_member_on_the_wire() -> None:
    assert msgspec.json.encode(ErrorObject(1, "m")) == b'{"code":1,"message":"m"}'
