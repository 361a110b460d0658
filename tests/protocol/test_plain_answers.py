"""Answers that are read in one go say what they say when they are read with care."""

import random
from typing import Any

import pytest
from msgspec import UNSET, Raw

from executa_protocol import codec, envelope
from executa_protocol.errors import DecodeFailure
from executa_protocol.methods.invoke import InvokeResult, read_invoke_result
from executa_protocol.methods.plain_answer import read_plain_answer
from executa_protocol.readings import STRICT

PLAIN = b'{"jsonrpc":"2.0","id":7,"result":{"success":true,"data":%b,"duration_ms":0.012}}\n'
FAILED = b'{"jsonrpc":"2.0","id":7,"result":{"success":false,"error":"no tea"}}\n'


def with_care(line: bytes) -> tuple[int, int, InvokeResult] | None:
    """Id, size of the result and result; None for what is no answer to an invoke at all."""
    message = envelope.parse(line, STRICT)
    if not isinstance(message, envelope.Message) or message.result is UNSET:
        return None
    try:
        result = read_invoke_result(message.result, STRICT)
    except DecodeFailure:
        return None
    assert isinstance(message.id, int)
    return message.id, len(memoryview(message.result)), result


def check(line: bytes) -> bool:
    """Whether the line was read in one go; then it says the same."""
    plain = read_plain_answer(line)
    if plain is None:
        return False
    careful = with_care(line)
    assert careful is not None, line
    identity, size, result = careful
    assert (plain.id, plain.size) == (identity, size)
    assert result.success
    assert result.error is UNSET
    assert isinstance(result.data, Raw)
    assert bytes(plain.data) == bytes(result.data)
    expected: Any = codec.decode_any(result.data)
    assert plain.value == expected
    assert type(plain.value) is type(expected)
    return True


@pytest.mark.parametrize(
    "data", [b'"tea"', b"1", b"1.5", b"null", b"true", b'{"a":[1,{"b":"c"}]}', b'"\xc3\xa9\\n"']
)
def test_plain_answers_are_read_in_one_go(data: bytes) -> None:
    assert check(PLAIN % data)


LEAST = b'{"jsonrpc":"2.0","id":1,"result":{"success":true,"data":1,"duration_ms":0}}'


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"data":1', b'"data":"\xff","data":1'),
        (b'"result"', b'"result":"\xff","result"'),
        (b'{"jsonrpc"', b'{"result":"\xff","jsonrpc"'),
        (b"}}", b'},"result":{"success":true,"data":1,"duration_ms":0}}'),
    ],
)
def test_the_shortest_line_has_no_room_for_what_would_be_skipped(
    old: bytes, new: bytes, end: bytes
) -> None:
    assert check(LEAST + end)
    assert not check(LEAST.replace(old, new, 1) + end)


@pytest.mark.parametrize("identity", [0, 7, 10**7, 10**15, 2**63])
def test_a_host_that_runs_for_years_reads_them_as_fast(identity: int) -> None:
    line = PLAIN.replace(b"7", b"%d" % identity).replace(b"0.012", b"12345.678") % b'"tea"'
    assert check(line)


NESTED = b"[" * 127 + b"]" * 127


@pytest.mark.parametrize(
    "line",
    [
        PLAIN % b"1e999",
        PLAIN % b"NaN",
        PLAIN % b'"\xff"',
        PLAIN % b'"\\ud800"',
        PLAIN % NESTED,
        PLAIN % (b'"%b"' % (b"x" * 4096)),
        PLAIN % (b"9" * 5000),
        PLAIN % b'1,"more":1e999',
        PLAIN.replace(b"7", b"7.0") % b"1",
        PLAIN.replace(b"7", b'"7"') % b"1",
        PLAIN.replace(b'"id"', b'"x":1e999,"id"') % b"1",
        PLAIN.replace(b"0.012", b'"x"') % b"1",
        PLAIN.replace(b'"result"', b'"result":1e309,"result"') % b"1",
        PLAIN.replace(b"true", b"null") % b"1",
        PLAIN.replace(b"}}", b'},"error":null}') % b"1",
        PLAIN.replace(b'"data"', b'"data":1e309,"data"') % b"1",
        PLAIN.replace(b"true", b'true,"success":false') % b"1",
        FAILED,
        b"\n",
        b'{"jsonrpc":"2.0","id":7,"method":"x"}\n',
    ],
)
def test_others_are_left_to_be_read_with_care(line: bytes) -> None:
    assert not check(line)


def test_a_depth_that_is_allowed_is_read_in_one_go() -> None:
    assert check(PLAIN % NESTED[1:-1])


def test_random_faults_change_nothing() -> None:
    dice = random.Random(7)  # noqa: S311 - no secret
    pieces = [b'"', b"}", b"{", b",", b"1e999", b"\\", b"\xff", b"[", b" ", b"null", b"0", b"\r"]
    lines = [PLAIN % b'{"a":[1.5,"b"]}', PLAIN % b'"tea"', FAILED]
    read = 0
    for _ in range(6_000):
        line = dice.choice(lines)[:-1]
        for _ in range(dice.choice((0, 1, 1, 2))):
            at = dice.randrange(len(line))
            line = line[:at] + dice.choice(pieces) + line[at + dice.randrange(3) :]
        read += check(line + b"\n")
    assert read > 1_000
