"""`invoke`: its params, its secrets, and the dialects of its result."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from executa_protocol.errors import DecodeFailure, StrictRefusal
from executa_protocol.methods import InvalidParams
from executa_protocol.methods.invoke import (
    InvokeContext,
    InvokeParams,
    read_invoke,
    read_invoke_result,
)
from executa_protocol.readings import STRICT
from tests.protocol.reading import Listening, encoded

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_the_seed_s_invoke_is_read_as_it_stands() -> None:
    """Seed lifecycle, Per-invoke context injection."""
    params = read_invoke(
        encoded(
            tool="summarize",
            arguments={"text": "…"},
            context={
                "credentials": {"OPENAI_API_KEY": "sk-1"},
                "invoke_id": "8f1c",
                "sampling_token": "eyJ1",
                "storage_token": "eyJ2",
            },
        ),
        STRICT,
    )
    assert params.tool == "summarize"
    assert bytes(params.arguments) == '{"text":"…"}'.encode()
    assert params.call_id() == "8f1c"
    assert params.deadline() is None
    assert isinstance(params.context, InvokeContext)
    assert params.context.credentials == {"OPENAI_API_KEY": "sk-1"}


def test_the_invoke_id_and_deadline_are_also_found_beside_the_tool() -> None:
    """R-23: old hosts put them there."""
    params = read_invoke(encoded(tool="t", invoke_id="a", deadline_ms=5))
    assert (params.call_id(), params.deadline()) == ("a", 5)
    context = {"invoke_id": "b", "deadline_ms": 6.5}
    params = read_invoke(encoded(tool="t", invoke_id="a", deadline_ms=5, context=context))
    assert (params.call_id(), params.deadline()) == ("b", 6.5)
    assert read_invoke(encoded(tool="t")).call_id() is None


def test_an_invoke_without_arguments_has_none() -> None:
    assert bytes(read_invoke(encoded(tool="t"), STRICT).arguments) == b"{}"
    assert msgspec.json.encode(InvokeParams(tool="t")) == b'{"tool":"t","arguments":{}}'


def test_null_arguments_read_as_absent() -> None:
    reader = Listening()
    assert bytes(read_invoke(b'{"tool":"t","arguments":null}', reader).arguments) == b"{}"
    assert reader.ids == ["CORE-001"]


@pytest.mark.parametrize(
    ("members", "path"),
    [({"tool": ""}, "tool"), ({"tool": 3}, "tool"), ({"tool": "t", "arguments": [1]}, "arguments")],
)
def test_a_bad_invoke_is_refused_by_path(members: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        read_invoke(encoded(members))
    assert caught.value.path == path
    assert caught.value.error.code == -32602
    assert caught.value.error.data == {"errorCode": "INVALID_PARAMS", "path": path}


def test_arguments_keep_every_digit() -> None:
    """R-14: integers stay exact, and 1.0 is not 1."""
    text = b'{"tool":"t","arguments":{"n":123456789012345678901234567890,"x":1.0}}'
    assert b"123456789012345678901234567890" in bytes(read_invoke(text).arguments)
    assert b"1.0" in bytes(read_invoke(text).arguments)


def test_no_secret_shows_in_a_repr() -> None:
    context = InvokeContext(
        credentials={"KEY": "secret-1"},
        sampling_token="secret-2",  # noqa: S106
        storage_token="secret-3",  # noqa: S106
        upload_token="secret-4",  # noqa: S106
        invoke_id="8f1c",
    )
    shown = repr(InvokeParams(tool="t", context=context))
    assert "secret" not in shown
    assert "secret" not in str(context.__rich_repr__())
    assert "KEY" in shown
    assert "8f1c" in shown


# --- The result of an invoke -----------------------------------------------------------


def test_a_wrapped_result_is_read_as_it_is() -> None:
    result = read_invoke_result(
        b'{"success":true,"data":{"n":1},"duration_ms":3,"tool":"t"}', STRICT
    )
    assert result.success
    assert result.data is not UNSET
    assert bytes(result.data) == b'{"n":1}'
    assert (result.duration_ms, result.tool, result.error) == (3.0, "t", UNSET)


@given(json_values)
def test_any_bare_data_is_a_success_or_an_envelope(value: Any) -> None:
    reader = Listening()
    result = read_invoke_result(msgspec.json.encode(value), reader)
    if reader.ids == ["CORE-004"]:
        assert result.success
        assert result.data is not UNSET
        assert msgspec.json.decode(result.data) == value
    else:
        assert isinstance(value, dict)


@pytest.mark.parametrize(
    "bare", [b"5", b"null", b"[1]", b'"x"', b"{}", b'{"success":3}', b'{"a":1}']
)
def test_bare_data_is_wrapped(bare: bytes) -> None:
    reader = Listening()
    result = read_invoke_result(bare, reader)
    assert result.success
    assert result.data is not UNSET
    assert bytes(result.data) == bare
    assert reader.ids == ["CORE-004"]
    with pytest.raises(StrictRefusal, match="CORE-004"):
        read_invoke_result(bare, STRICT)


@pytest.mark.parametrize("envelope", [b'{"data":1}', b'{"error":"no"}'])
def test_an_absent_success_reads_as_false(envelope: bytes) -> None:
    reader = Listening()
    assert not read_invoke_result(envelope, reader).success
    assert reader.ids == ["CORE-005"]


@pytest.mark.parametrize(
    ("error", "words"),
    [({"code": 1, "message": "no"}, "no"), ({"code": 1}, '{"code":1}'), (["a"], '["a"]'), (5, "5")],
)
def test_an_error_that_is_no_string_gives_its_words(error: Any, words: str) -> None:
    reader = Listening()
    result = read_invoke_result(encoded(success=False, error=error), reader)
    assert (result.success, result.error) == (False, words)
    assert reader.ids == ["CORE-006"]


def test_a_null_error_and_a_wrong_duration_are_left_out() -> None:
    reader = Listening()
    text = b'{"success":true,"error":null,"duration_ms":"3","tool":null,"data":null}'
    result = read_invoke_result(text, reader)
    assert result.success
    assert result.data is not UNSET
    assert bytes(result.data) == b"null"
    assert (result.error, result.duration_ms, result.tool) == (UNSET, UNSET, UNSET)
    assert reader.ids == ["CORE-001", "CORE-003", "CORE-003"]


@given(st.binary(max_size=60))
def test_any_bytes_as_a_result_raise_nothing_but_our_own_errors(data: bytes) -> None:
    try:
        read_invoke_result(data)
    except DecodeFailure:
        return
