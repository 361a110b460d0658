"""Whose an unreadable line is, as far as its first bytes tell (R-10, R-11)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from executa_protocol.head import Head, read_head
from executa_protocol.limits import HEAD_BYTES

NOTHING = Head()


@pytest.mark.parametrize(
    "identity", [0, 7, -7, 2**80, "", "7", "r-1", 'a"\\b', "żółć", "\U0001f99c"]
)
def test_an_int_or_a_string_is_found(identity: int | str) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": identity, "result": 1}).encode()
    assert read_head(line) == Head(identity)
    assert read_head(line.decode().encode()) == Head(identity)


@pytest.mark.parametrize(
    "token", [b"null", b"true", b"7.0", b"1e3", b"[1]", b'{"a":1}', b"nul", b""]
)
def test_an_id_of_another_type_is_none(token: bytes) -> None:
    assert read_head(b'{"id":%b,"method":"x"}' % token) == Head(is_request=True)


def test_space_and_escapes_do_not_hide_a_key() -> None:
    assert read_head(b' \t\r\n{ "\\u0069d" \t:\r7 , "m\\u0065thod" : "x" }') == Head(7, True)


@pytest.mark.parametrize("value", [b'"x"', b"5", b"null", b"{}", b'["x"]', b'"\\ud800"', b'"\xff"'])
def test_any_method_makes_a_request(value: bytes) -> None:
    line = b'{"id":1,"method":%b,"params":' % value
    assert read_head(line) == Head(1, is_request=True)


def test_a_method_too_long_for_the_head_makes_a_request() -> None:
    assert read_head(b'{"id":1,"method":"' + b"x" * HEAD_BYTES + b'"}') == Head(1, is_request=True)


def test_keys_of_inner_levels_do_not_count() -> None:
    line = b'{"params":{"id":1,"method":"x","a":[{"id":2}]},"result":"{\\"id\\":3","id":4}'
    assert read_head(line) == Head(4)


def test_the_last_of_two_ids_wins() -> None:
    assert read_head(b'{"id":1,"id":"two","result":1}') == Head("two")
    assert read_head(b'{"id":1,"id":null,"result":1}') == NOTHING


def test_an_id_that_is_cut_off_is_not_believed() -> None:
    for line in (b'{"id":12', b'{"id":"12', b'{"id', b'{"id"', b'{"id":', b'{"id":"1\\'):
        assert read_head(line) == NOTHING
    padded = b'{"a":"' + b"x" * (HEAD_BYTES - 20) + b'","id":123456789}'
    assert len(padded) > HEAD_BYTES
    assert read_head(padded) == NOTHING


@pytest.mark.parametrize("room", range(-3, 4))
def test_only_the_first_bytes_are_looked_at(room: int) -> None:
    tail = b'","id":7,'
    line = b'{"a":"'.ljust(HEAD_BYTES - len(tail) - room, b"x") + tail + b'"result":1}'
    assert read_head(line) == (Head(7) if room >= 0 else NOTHING)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b'["id",7]',
        b'"id":7',
        b"{id:7}",
        b"{'id':7}",
        b'{,"id":7}',
        b'{"a":1{"id":7}',
        b'{"a":1 "id":7}',
        b'{"a" 1,"id":7}',
        b'\xef\xbb\xbf{"id":7}',
    ],
)
def test_what_is_no_object_up_to_the_id_gives_nothing(line: bytes) -> None:
    assert read_head(line) == NOTHING


def test_an_id_before_the_fault_is_found() -> None:
    assert read_head(b'{"id":7,"result":NaN}') == Head(7)
    assert read_head(b'{"id":7,"result":{"a":"\xff"}}') == Head(7)
    assert read_head(b'{"id":7} trailing') == Head(7)


def test_a_depth_bomb_is_walked_over_without_recursion() -> None:
    assert read_head(b'{"id":7,"a":' + b"[" * 100_000) == Head(7)
    assert read_head(b'{"a":' + b"[" * 500 + b"]" * 500 + b',"id":7}') == Head(7)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_head_and_never_raise(data: bytes) -> None:
    for line in (data, b'{"id":7,' + data, b'{"' + data, b'{"a":' + data + b',"id":7}'):
        head = read_head(line)
        assert head.id is UNSET or type(head.id) in (int, str)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
members = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "x"]) | st.text(max_size=3),
    json_values,
    max_size=6,
)


@given(members, st.booleans())
def test_a_whole_object_is_read_as_a_json_parser_reads_it(
    value: dict[str, Any], ascii_only: bool
) -> None:
    line = json.dumps(value, ensure_ascii=ascii_only).encode(errors="replace")
    identity: Any = value.get("id")
    if type(identity) not in (int, str):
        identity = UNSET
    if len(line) <= HEAD_BYTES:
        assert read_head(line) == Head(identity, "method" in value)
