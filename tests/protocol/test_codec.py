"""JSON in and out: what a line may hold, and what leaves this side (R-14)."""

import enum
import json
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure, NotEncodable
from executa_protocol.limits import KIB, MAX_DEPTH
from tests.support import reference_json

LARGE = 4 * KIB
"""Lines above this are scanned where smaller ones are decoded."""

in_both_sizes = pytest.mark.parametrize("padding", [b"", b'"' + b"x" * LARGE + b'"'])


def line_of(value: bytes, padding: bytes) -> bytes:
    """An object with the value in it, perhaps a large one."""
    return b'{"padding":%b,"value":%b}' % (padding or b'""', value)


def refused(line: bytes) -> str:
    """The words with which a line is refused."""
    with pytest.raises(DecodeFailure) as caught:
        codec.check_content(line)
    return str(caught.value)


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    """Arrays or objects in each other."""
    return opening * depth + (b"1" if opening != b"[" else b"") + closing * depth


# --- UTF-8 ------------------------------------------------------------------------------------


@in_both_sizes
@pytest.mark.parametrize(
    "bad",
    [
        b"\xff",
        b"\xc3",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xed\xa0\x80\xed\xb0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
    ],
)
def test_invalid_utf8_is_refused_by_its_position(bad: bytes, padding: bytes) -> None:
    line = line_of(b'"a' + bad + b'"', padding)
    assert refused(line) == f"invalid UTF-8 at byte {line.index(bad)}"


@in_both_sizes
@pytest.mark.parametrize("text", ["zażółć", "\u2028\u2029\x85", "🦜", "\ufeff", "\ufffe\uffff"])
def test_valid_utf8_passes(text: str, padding: bytes) -> None:
    codec.check_content(line_of(json.dumps(text, ensure_ascii=False).encode(), padding))


@pytest.mark.parametrize("escape", [b"\\ud800", b"\\udc00", b"\\ud800\\ud800", b"\\udc00\\ud800"])
def test_lone_surrogates_are_refused(escape: bytes) -> None:
    assert refused(line_of(b'"%b"' % escape, b""))


# --- Numbers ----------------------------------------------------------------------------------


@in_both_sizes
@pytest.mark.parametrize(
    "number",
    [
        b"1e309",
        b"-1e309",
        b"1E309",
        b"1e+309",
        b"1e999999",
        b"1.8e308",
        b"123456789e301",
        b"9" * 309 + b".0",
        b"9" * 210 + b"e99",
        b"1" * 250 + b".5e+88",
        b"-" + b"9" * 300 + b"E9",
        b"0.001e312",
    ],
)
def test_a_number_that_reads_as_infinite_is_refused(number: bytes, padding: bytes) -> None:
    assert not math.isfinite(float(number))
    assert "Number out of range" in refused(line_of(number, padding))


@in_both_sizes
@pytest.mark.parametrize(
    "number",
    [b"1e308", b"1.7976931348623157e308", b"1" * 210 + b"e99", b"0e999", b"1e-999", b"0.0001e311"],
)
def test_a_number_that_is_large_but_finite_passes(number: bytes, padding: bytes) -> None:
    line = line_of(number, padding)
    codec.check_content(line)
    assert codec.decode_any(line)["value"] == float(number)


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity", b"nan", b"inf"])
def test_nan_and_infinity_are_refused(word: bytes) -> None:
    assert "malformed" in refused(line_of(word, b""))


@in_both_sizes
@pytest.mark.parametrize("digits", [20, 25, 100, 308, 309, 310, 4300])
def test_integers_of_any_size_stay_exact(digits: int, padding: bytes) -> None:
    line = line_of(b"9" * digits, padding)
    codec.check_content(line)
    assert codec.decode_any(line)["value"] == 10**digits - 1
    assert codec.encode({"n": 10**digits - 1}) == b'{"n":%b}' % (b"9" * digits)


@in_both_sizes
def test_integers_that_python_does_not_convert_are_refused(padding: bytes) -> None:
    assert "Integer value out of range" in refused(line_of(b"9" * 4301, padding))


# --- Depth ------------------------------------------------------------------------------------


@in_both_sizes
@pytest.mark.parametrize(
    ("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"":', b"}]")]
)
def test_128_levels_pass_and_129_are_refused(
    opening: bytes, closing: bytes, padding: bytes
) -> None:
    levels = opening.count(b"[") + opening.count(b"{")
    most = (MAX_DEPTH - 1) // levels  # one is the object around
    rest = (MAX_DEPTH - 1) % levels
    fits = b"[" * rest + nested(most, opening, closing) + b"]" * rest
    codec.check_content(line_of(fits, padding))
    assert (
        refused(line_of(b"[" + fits + b"]", padding)) == "arrays and objects nest deeper than 128"
    )


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1, 2 * MAX_DEPTH + 1])
def test_depth_is_exact_without_an_object_around(depth: int) -> None:
    line = nested(depth)
    if depth <= MAX_DEPTH:
        codec.check_content(line)
    else:
        assert "deeper" in refused(line)


def test_many_brackets_side_by_side_or_in_strings_are_not_deep() -> None:
    for value in (
        b"[" + b",".join([b"[]"] * 1000) + b"]",
        b'"' + b"[" * 1000 + b'"',
        b'"\\"' + b"[" * 1000 + b'\\\\"',
        b'["[","]",' + b'"{[",' * 500 + b'"\\\\",[]]',
        b'{"[":"' + b"{" * 500 + b'"}',
    ):
        codec.check_content(line_of(value, b""))


def test_quotes_and_backslashes_do_not_hide_depth() -> None:
    for string in (b'"\\\\"', b'"\\""', b'""', b'"\\\\\\""', b'"]]]]"', b'"\\\\]"'):
        deep = b"[%b," % string * 200 + b"1" + b"]" * 200
        assert "deeper" in refused(deep)


def test_a_depth_bomb_is_refused_without_recursion() -> None:
    for bomb in (
        nested(100_000),
        nested(100_000, b'{"a":', b"}"),
        b"[" * 100_000,
        b"[" * 100_000 + b'"' + b"]" * 100_000,
        b"[{" * 50_000,
    ):
        assert "deeper" in refused(bomb)


def in_a_small_thread(work: Callable[[], None]) -> list[BaseException]:
    """Run `work` on 128 KiB of stack, the least that a system gives by default; what it raised."""
    faults: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as fault:  # noqa: BLE001 - looked at by the test
            faults.append(fault)

    before = threading.stack_size(128 * KIB)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return faults


@pytest.mark.parametrize("depth", [MAX_DEPTH, 100_000])
def test_depth_is_safe_in_a_thread_with_a_small_stack(depth: int) -> None:
    faults = in_a_small_thread(lambda: codec.check_content(nested(depth)))
    assert [type(fault) for fault in faults] == ([] if depth == MAX_DEPTH else [DecodeFailure])
    unclosed = in_a_small_thread(lambda: codec.check_content(b"[" * 2 * MAX_DEPTH))
    assert [type(fault) for fault in unclosed] == [DecodeFailure]


# --- Agreement with a plain parser ------------------------------------------------------------

pieces = st.sampled_from(
    [
        b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\", b"1", b"0", b"-", b".", b"e", b"E", b"+",
        b" ", b"true", b"null", b"NaN", b'"a"', b"\\u", b"d800", b"dc00", b"00e9", b"\n", b"\xc3",
        b"\xa9", b"\xff", b"9" * 120, b"e99", b"e308", b"[" * 70, b"]" * 70, b'{"a":' * 40,
        b"}" * 40, b"\t", b'"\\""', b"\x00", b"\x1f", b"\x7f", b"\xef\xbb\xbf",
    ]
)  # fmt: skip
texts = st.lists(pieces, max_size=25).map(b"".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(texts | st.binary(max_size=60) | values.map(lambda value: json.dumps(value).encode()))
def test_small_lines_are_accepted_exactly_when_a_plain_parser_accepts_them(text: bytes) -> None:
    assert accepted(text) == reference_json.accepts(text)


@given(texts | values.map(lambda value: json.dumps(value).encode()))
def test_large_lines_with_skipped_values_are_judged_alike(text: bytes) -> None:
    line = b'{"x":%b,"padding":"%b"}' % (text, b"x" * LARGE)
    assume(reference_json.accepts(text) == reference_json.accepts(line))  # no tricks with brackets
    assert accepted(line) == reference_json.accepts(line)


escapes = st.sampled_from(
    [b"\\\\", b'\\"', b"\\n", b"[", b"]" * 200, b"{" * 200, b"1e999", b"x" * 600, b"\\\\" * 40]
)
long_strings = st.lists(escapes, max_size=12).map(lambda parts: b'"' + b"".join(parts) + b'"')


@given(st.lists(long_strings | texts | values.map(lambda value: json.dumps(value).encode())))
def test_what_long_strings_hold_is_neither_depth_nor_number(members: list[bytes]) -> None:
    listed = b"".join(b'"k%d":%b,' % pair for pair in enumerate(members))
    line = b'{%b"padding":"%b"}' % (listed, b"x" * LARGE)
    assert accepted(line) == reference_json.accepts(line)


class _Skips(Struct):
    known: int = 0


_SKIPS = msgspec.json.Decoder(_Skips)


def accepted(line: bytes) -> bool:
    """Whether a line passes the check and then a decoder that skips what it does not know."""
    checked = False
    try:
        codec.check_content(line)
        checked = True
        codec.decode(line, _SKIPS)
    except DecodeFailure as fault:
        # JSON, but none that this decoder wants; it says the second of a number of 309 digits.
        return str(fault).startswith(("Expected `object`", "Number out of range")) and checked
    return True


@given(values)
def test_what_is_encoded_is_decoded_to_the_same(value: Any) -> None:
    try:
        data = codec.encode(value)
    except NotEncodable:
        assert not math.isfinite(sum(_floats(value)))
        return
    codec.check_content(data)
    assert codec.decode_any(data) == value == reference_json.load(data)


def _floats(value: Any) -> list[float]:
    if isinstance(value, dict | list):
        members = cast("dict[str, Any] | list[Any]", value)
        items = members.values() if isinstance(members, dict) else members
        return [number for item in items for number in _floats(item)]
    return [value / 1e300] if isinstance(value, float) else []


# --- Decoding ---------------------------------------------------------------------------------


class Item(Struct):
    name: str
    counts: dict[int, int] = {}


class Box(Struct):
    items: list[Item]


_BOX = msgspec.json.Decoder(Box)


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (b'{"items":[{"name":1}]}', "items[0].name", "items[0].name: Expected `str`, got `int`"),
        (b'{"items":[{}]}', "items[0]", "items[0]: Object missing required field `name`"),
        (b"[]", "", "Expected `object`, got `array`"),
        (b"{}", "", "Object missing required field `items`"),
        (
            b'{"items":[{"name":"a","counts":{"x":1}}]}',
            "items[0].counts",
            "items[0].counts: Expected `int`, got `str`",
        ),
        (b'{"items":', "", "Input data was truncated"),
    ],
)
def test_a_fault_is_named_by_its_path(text: bytes, path: str, message: str) -> None:
    with pytest.raises(DecodeFailure) as caught:
        codec.decode(text, _BOX)
    assert (caught.value.path, str(caught.value)) == (path, message)


def test_the_last_of_duplicate_keys_wins() -> None:
    assert codec.decode_any(b'{"a":1,"a":2}') == {"a": 2}
    assert codec.decode(b'{"items":[],"items":[{"name":"a"}]}', _BOX) == Box([Item("a")])


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "invalid"), "invalid UTF-8 at byte 1"),
        (RecursionError(), "nest deeper"),
    ],
)
def test_what_some_releases_of_the_library_raise_is_a_decode_failure(
    fault: Exception, words: str
) -> None:
    class Stub:
        def decode(self, data: bytes) -> None:
            raise fault

    with pytest.raises(DecodeFailure, match=words):
        codec.decode(b"", Stub())  # type: ignore[arg-type]


# --- Encoding ---------------------------------------------------------------------------------

NAN, INFINITY = math.nan, math.inf


class Point(Struct, rename="camel"):
    x_value: float
    note: str | None = None
    absent: int | UnsetType = UNSET


@dataclass
class Plain:
    y: float
    raw: Raw | None = None


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (NAN, "the value"),
        (-INFINITY, "the value"),
        ({"a": {"b": [1, NAN]}}, "a.b[1]"),
        ([None, {"c": INFINITY}], "[1].c"),
        ((1.0, NAN), "[1]"),
        ({"p": Point(NAN)}, "p.xValue"),
        (Point(INFINITY), "xValue"),
        ([Plain(NAN, Raw(b"null"))], "[0].y"),
        ({NAN}, "[0]"),
        ({1: {2: NAN}}, "1.2"),
    ],
)
def test_nan_and_infinity_are_refused_by_their_path(value: object, path: str) -> None:
    with pytest.raises(NotEncodable, match="is not a finite number") as caught:
        codec.encode(value)
    assert f"not JSON: {path} is" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": None, "b": [1.5, "null"]}, b'{"a":null,"b":[1.5,"null"]}'),
        (Point(1.0), b'{"xValue":1.0,"note":null}'),
        (Plain(1.0), b'{"y":1.0,"raw":null}'),
        ([Plain(1.0, Raw(b"null")), Colour.RED, None], b'[{"y":1.0,"raw":null},"red",null]'),
        ({"raw": Raw(b'{"a":null}')}, b'{"raw":{"a":null}}'),
        ({"n": 2**70, "x": None}, b'{"n":1180591620717411303424,"x":null}'),
        ("a\nb\u2028", '"a\\nb\u2028"'.encode()),
    ],
)
def test_null_is_no_sign_of_a_fault(value: object, text: bytes) -> None:
    assert codec.encode(value) == text


@pytest.mark.parametrize(
    "value",
    [
        "\ud800",
        {"\udfff": 1},
        {1j: 1},
        object(),
        {None: 1},
        UNSET,
        [UNSET],
        pytest.param(10**5000, id="huge"),
    ],
)
def test_what_json_has_no_form_for_is_refused(value: object) -> None:
    with pytest.raises(NotEncodable, match="not JSON"):
        codec.encode(value)


@pytest.mark.parametrize("depth", [100, 900, 990, 1_000, 100_000])
def test_a_value_too_deep_for_the_encoder_or_its_check_is_refused(depth: int) -> None:
    value: list[Any] = [None]
    for _ in range(depth):
        value = [value]
    fault = ""
    try:
        codec.encode(value)
    except NotEncodable as refusal:
        fault = str(refusal)
    assert ("too deep" in fault) if depth > 1_000 or fault else depth < 1_000


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(NotEncodable, match="contains itself"):
        codec.encode(value)


@pytest.mark.parametrize("raw", [b"[1,\n2]", b"1\n", b"\n"])
def test_a_raw_value_with_a_newline_is_refused(raw: bytes) -> None:
    with pytest.raises(NotEncodable, match="newline"):
        codec.encode({"raw": Raw(raw)})
