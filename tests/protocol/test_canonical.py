"""One encoding for all spellings of the same value."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from executa_protocol.canonical import canonical, digest
from executa_protocol.errors import DecodeFailure
from executa_protocol.limits import MAX_DEPTH

SAME = [
    (b'{"a":1,"b":2}', b'{ "b": 2,\n"a": 1 }'),
    (b'{"a":2}', b'{"a":1,"a":2}'),
    (b'"\\u00e9\\/\\n"', '"é/\\u000a"'.encode()),
    (b'"\\ud83d\\ude00"', '"😀"'.encode()),
    (b"1.5", b"1.50"),
    (b"1.5", b"15e-1"),
    (b"1.5", b"0.15E+1"),
    (b"100.0", b"1e2"),
    (b"0.0", b"0e7"),
    (b"-0.0", b"-0e-3"),
    (b"0.001", b"1e-0003"),
    (b"[1,2]", b"\t[1 , 2]\r\n"),
]

DIFFERENT = [
    (b"1", b"1.0"),
    (b"1", b'"1"'),
    (b"1", b"true"),
    (b"0", b"null"),
    (b"0.0", b"-0.0"),
    (b"9007199254740993", b"9007199254740992"),
    (b"18446744073709551617", b"18446744073709551616"),
    (b"0.1", b"0.1000000000000000055511151231257827"),
    (b"1e2", b"100"),
    (b'{"a":null}', b"{}"),
    (b"[1,2]", b"[2,1]"),
    (b'"\\u00e9"', b'"e\\u0301"'),
    (b'"a"', b'"A"'),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_value_have_one_encoding(one: bytes, other: bytes) -> None:
    assert canonical(one) == canonical(other)
    assert digest(one) == digest(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_values_have_different_encodings(one: bytes, other: bytes) -> None:
    assert canonical(one) != canonical(other)
    assert digest(one) != digest(other)


def test_the_encoding_itself() -> None:
    raw = b'{"b":[1.50,-2e-7,10,true,null],"a":{"z":"x","\xc3\xa9":0.0}}'
    assert canonical(raw) == (b'{"a":{"z":"x","\xc3\xa9":0e0},"b":[15e-1,-2e-7,10,true,null]}')
    assert canonical(Raw(raw)) == canonical(raw)


def test_keys_are_sorted_by_code_point_beyond_the_basic_plane_too() -> None:
    assert canonical('{"😀":1,"�":2}'.encode()) == '{"�":2,"😀":1}'.encode()


def test_a_digest_is_sha_256_in_hexadecimal() -> None:
    assert digest(b" {}") == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"NaN",
        b"Infinity",
        b"1e999",
        b"[-1e400]",
        b'"\\ud800"',
        b'"\xff"',
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
        b"[" * 100_000,
        b"1e-" + b"1" * 19,
        b"1e-" + b"1" * 5000,
    ],
)
def test_what_no_frame_may_hold_has_no_encoding(raw: bytes) -> None:
    with pytest.raises(DecodeFailure):
        canonical(raw)


def test_an_exponent_may_have_eighteen_digits() -> None:
    assert canonical(b"1e-" + b"1" * 18) == b"1e-" + b"1" * 18
    assert canonical(b"0e-" + b"1" * 19) == b"0e0"


def test_the_deepest_value_that_a_frame_may_hold_is_encoded() -> None:
    deepest = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert canonical(deepest) == deepest


json_values: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(json_values)
def test_indentation_escapes_and_the_order_of_keys_do_not_matter(value: Any) -> None:
    plain = canonical(msgspec.json.encode(value))
    assert canonical(json.dumps(value, indent=1).encode()) == plain
    assert canonical(json.dumps(_reversed(value), ensure_ascii=False).encode()) == plain
    assert canonical(plain) == plain
    assert msgspec.json.decode(plain) == value


def _reversed(value: Any) -> Any:
    if isinstance(value, list):
        return [_reversed(item) for item in value]  # type: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: _reversed(item) for key, item in reversed(value.items())}  # type: ignore[reportUnknownVariableType]
    return value


@given(json_values, json_values)
def test_two_values_have_one_encoding_exactly_if_they_are_one(one: Any, other: Any) -> None:
    same = canonical(msgspec.json.encode(one)) == canonical(msgspec.json.encode(other))
    # repr tells 1 from 1.0 and from True, which == does not.
    assert same == (repr(_sorted(one)) == repr(_sorted(other)))


def _sorted(value: Any) -> Any:
    if isinstance(value, list):
        return [_sorted(item) for item in value]  # type: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}  # type: ignore[reportUnknownVariableType]
    return value


@given(st.binary())
def test_arbitrary_bytes_raise_nothing_but_a_decode_failure(raw: bytes) -> None:
    for form in (raw, b"[" + raw + b"]"):
        try:
            again = canonical(form)
        except DecodeFailure:
            continue
        assert canonical(again) == again
