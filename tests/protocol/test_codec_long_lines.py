"""The check of long lines with many short strings, held against slow and plain ones (R-14)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol import codec
from executa_protocol.limits import MAX_DEPTH
from tests.protocol.test_codec import LARGE, accepted
from tests.support import reference_json

MANY = b'"a",{"b":[]},' * 400
"""Strings and brackets enough for a line whose strings are not worth to be taken out."""

short_strings = st.lists(
    st.sampled_from(
        [b"[", b"]", b"{", b"}}", b"\\\\", b'\\"', b"\\n", b"\\u005d", b"a", b":", b","]
    ),
    max_size=6,
).map(lambda parts: b'"' + b"".join(parts) + b'"')
levels = st.lists(
    st.tuples(short_strings, st.booleans(), short_strings | st.just(b"[{},[[]]]")), max_size=8
)
fillers = st.sampled_from([MANY, MANY + b'"\\"",' * 40, MANY + b'"\\n",' * 40, MANY * 2 + b'"]",'])


@given(levels, st.integers(118, 134), fillers, st.booleans())
def test_depth_among_many_short_strings_is_that_of_a_plain_count(
    kinds: list[tuple[bytes, bool, bytes]], depth: int, filler: bytes, closed: bool
) -> None:
    line, ends = b"[" + filler, [b"]"]
    for at in range(depth - 1):
        before, is_object, after = kinds[at % len(kinds)] if kinds else (b"1", False, b"1")
        line += b"{%b:%b,%b:" % (before, after, before) if is_object and kinds else b"[%b," % after
        ends.append(b"}" if is_object and kinds else b",%b]" % after)
    line += b"1" + (b"".join(reversed(ends)) if closed else b"")
    assert reference_json.accepts(line) is (closed and reference_json.depth(line.decode()) <= 128)
    assert codec.too_deep(line) is (reference_json.depth(line.decode()) > MAX_DEPTH)
    # What is no JSON may be refused for its depth, but a decoder must never go deeper.
    assert codec.too_deep(line[:-1] + b'"') >= (reference_json.depth(line[:-1].decode()) > 128)


@given(st.lists(st.sampled_from([b"{", b"}", b"{" * 60, b"}" * 60, b"{}" * 130])))
def test_steps_of_many_brackets_find_what_a_plain_count_finds(parts: list[bytes]) -> None:
    brackets = b"".join(parts).lstrip(b"}")
    level = deepest = 0
    for bracket in brackets:
        level += 1 if bracket == ord("{") else -1
        if level < 0:  # no decoder reads on
            break
        deepest = max(deepest, level)
    line = b'"",' * LARGE + brackets
    assert codec.too_deep(line) or deepest <= MAX_DEPTH
    if level >= 0:
        assert codec.too_deep(line) is (deepest > MAX_DEPTH)


mantissas = st.sampled_from([b"1", b"0", b"-3", b"12.5", b"0.001", b"9" * 70, b"-9." + b"9" * 80])
exponents = st.sampled_from([b"", b"e309", b"E999", b"e+308", b"e+0400", b"e-999", b"e12", b"e99"])
numbers = st.tuples(mantissas, exponents).map(b"".join)
idlike = st.tuples(st.sampled_from([b"", b"ab", b"f-", b"at ", b"x:", b"["]), numbers).map(b"".join)


@given(
    st.lists(numbers | idlike.map(lambda text: b'"%b"' % text), max_size=5),
    st.sampled_from([b"", b" ", b"\t"]),
    st.sampled_from([0, 0, 1, 5, 40]),
)
def test_infinite_numbers_are_found_among_ids_that_look_like_them(
    items: list[bytes], space: bytes, ids: int
) -> None:
    listed = [*items, b'"7e3456e789"', b'"c4e1000"'] * ids + [*items, b'"e"']
    line = b"[%b%b]" % (MANY, b",".join(space + item for item in listed))
    assert accepted(line) == reference_json.accepts(line)


def test_ids_alone_make_no_number_that_may_be_infinite(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(data: bytes, decoder: object) -> None:
        pytest.fail("decoded as a whole")

    monkeypatch.setattr(codec, "decode", never)
    codec.check_content(b'[%b"7e3456","call-1e999","f-1e+999",12.5e30,"12.3e456"]' % MANY)
