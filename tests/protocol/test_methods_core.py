"""The lifecycle's methods: handshake structs, health, cancel and progress."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from executa_protocol.errors import DecodeFailure, StrictRefusal
from executa_protocol.limits import PROGRESS_MAX_BYTES
from executa_protocol.methods import InvalidParams, refusal
from executa_protocol.methods.core import (
    HostCapabilities,
    InitializeParams,
    InitializeResult,
    PeerInfo,
    read_cancel,
    read_health_result,
)
from executa_protocol.methods.invoke import (
    read_invoke,
)
from executa_protocol.methods.progress import ProgressParams, check_progress, read_progress
from executa_protocol.readings import STRICT
from tests.protocol.reading import Listening, encoded

SEED_OFFER = {
    "protocolVersion": "2.0",
    "clientInfo": {"name": "matrix-agent", "version": "1.0"},
    "capabilities": {
        "sampling": {
            "modalities": ["text"],
            "maxTokensPerCall": 8192,
            "maxCallsPerInvoke": 8,
            "responseFormat": ["json_object", "json_schema"],
        },
        "fileTransport": True,
    },
}
SEED_ANSWER: dict[str, Any] = {
    "protocolVersion": "2.0",
    "server_info": {"name": "my-tool", "version": "0.1.0"},
    "capabilities": {"sampling": {}},
}

# --- Handshake structs ---------------------------------------------------------


def test_the_seed_s_offer_survives_the_round_trip() -> None:
    """Seed lifecycle, v2 capability handshake, Request."""
    offer = msgspec.json.decode(encoded(SEED_OFFER), type=InitializeParams)
    assert msgspec.json.decode(msgspec.json.encode(offer)) == SEED_OFFER


def test_the_seed_s_answer_survives_the_round_trip() -> None:
    """Seed lifecycle, v2 capability handshake, Response."""
    answer = msgspec.json.decode(encoded(SEED_ANSWER), type=InitializeResult)
    assert answer.server_info == PeerInfo("my-tool", "0.1.0")
    assert msgspec.json.decode(msgspec.json.encode(answer)) == SEED_ANSWER


def test_what_is_not_offered_is_not_on_the_wire() -> None:
    assert msgspec.json.encode(HostCapabilities(cancellation={})) == b'{"cancellation":{}}'


# --- health --------------------------------------------------------------------


@pytest.mark.parametrize("status", ["ready", "error", "initializing"])
def test_the_seed_s_health_words_are_read_as_they_are(status: str) -> None:
    answer = read_health_result(encoded(status=status, message="", details={}), STRICT)
    assert (answer.status, answer.message, answer.details) == (status, "", {})


@pytest.mark.parametrize("word", ["healthy", "ok", "OK"])
def test_other_words_for_health_read_as_ready(word: str) -> None:
    """R-28."""
    reader = Listening()
    assert read_health_result(encoded(status=word, version="1"), reader).status == "ready"
    assert reader.ids == ["CORE-002"]
    with pytest.raises(StrictRefusal, match="CORE-002"):
        read_health_result(encoded(status=word), STRICT)


def test_health_details_of_the_wrong_type_are_left_out() -> None:
    reader = Listening()
    answer = read_health_result(encoded(status="ready", message=5, details=[1]), reader)
    assert (answer.message, answer.details) == (UNSET, UNSET)
    assert reader.ids == ["CORE-003", "CORE-003"]


@pytest.mark.parametrize("answer", [{"status": "dead"}, {}, [], "ready", {"status": 1}])
def test_an_answer_without_a_health_word_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidParams):
        read_health_result(encoded(answer) if answer != {} else b"{}")


# --- executa/cancel --------------------------------------------------------------


def test_a_cancel_names_its_invoke() -> None:
    """R-45."""
    params = read_cancel(encoded(invoke_id="8f1c", reason="timeout"))
    assert (params.invoke_id, params.reason) == ("8f1c", "timeout")
    with pytest.raises(InvalidParams):
        read_cancel(UNSET)


# --- executa/progress -------------------------------------------------------------


def test_a_progress_event_keeps_its_data_raw() -> None:
    params = read_progress(b'{"type":"tool_update","data":{"n":1.0},"context":{"invoke_id":"i"}}')
    assert params.type == "tool_update"
    assert params.data is not UNSET
    assert bytes(params.data) == b'{"n":1.0}'


@pytest.mark.parametrize("kind", ["log", 5, None])
def test_another_type_of_progress_is_read_as_progress(kind: Any) -> None:
    reader = Listening()
    members = {} if kind is None else {"type": kind}
    assert read_progress(msgspec.json.encode(members), reader).type == "progress"
    assert reader.ids == ["CORE-007"]


def test_a_progress_event_with_a_bad_context_is_refused_by_path() -> None:
    with pytest.raises(InvalidParams) as caught:
        read_progress(b'{"type":"progress","context":{"invoke_id":5}}')
    assert caught.value.path == "context.invoke_id"


def test_a_progress_event_has_at_most_eight_kibibytes() -> None:
    text = '"' + "x" * (PROGRESS_MAX_BYTES - 2) + '"'
    check_progress(ProgressParams(type="progress", data=Raw(text.encode())))
    check_progress(ProgressParams(type="progress"))
    with pytest.raises(InvalidParams, match=r"^data: 8,193 bytes"):
        check_progress(ProgressParams(type="progress", data=Raw(text.encode() + b" ")))


# --- Refusals ---------------------------------------------------------------------------


def test_a_strict_refusal_is_answered_with_the_requirement() -> None:
    with pytest.raises(StrictRefusal) as caught:
        read_invoke(b'{"tool":"t","arguments":null}', STRICT)
    error = refusal(caught.value, "INVALID_PARAMS")
    assert error.code == -32602
    assert error.data == {"errorCode": "INVALID_PARAMS", "requirement": "CORE-001"}


def test_a_fault_that_knows_its_code_keeps_it() -> None:
    fault = InvalidParams("STORAGE_INVALID_PATH", "key: bad", path="key")
    assert refusal(fault, "STORAGE_INVALID_REQUEST").code == -32027
    plain = DecodeFailure("bad", path="x")
    assert refusal(plain, "STORAGE_INVALID_REQUEST").data == {
        "errorCode": "INVALID_REQUEST",
        "path": "x",
    }
