"""`check golden`: a parser that reads as told passes, and each way to read otherwise is caught."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_conformance.golden.judge import Said, difference, same
from executa_conformance.golden.rows import Row, chapters, rows
from executa_conformance.golden.target import check_parser
from executa_conformance.model import Result
from executa_conformance.patience import Patience
from executa_conformance.registry import checks, select

PARSER = (sys.executable, str(Path(__file__).parent / "peers" / "parser.py"))

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


async def results(*words: str, only: str = "*", strict: bool = False) -> dict[str, Result]:
    """Every golden line that fits, read by our parser in the way that the words say."""
    found = select(checks("parser"), [only])
    work = check_parser((*PARSER, *words), strict=strict)
    ran = await work(found, Patience(), 1, None)
    return {result.check.partition(":")[2]: result for result in ran.results}


@pytest.mark.parametrize("strict", [False, True], ids=["tolerant", "strict"])
async def test_our_own_parser_reads_every_golden_line_as_told(strict: bool) -> None:
    found = await results(strict=strict)

    assert len(found) == sum(len(rows(chapter)) for chapter in chapters())
    assert {result.message for result in found.values()} == {""}


async def test_a_parser_that_calls_everything_valid_fails_each_invalid_line() -> None:
    found = await results("--lie", only="wire")

    for row in rows("wire"):
        result = found[f"wire/{row['name']}"]
        assert (result.word == "pass") == (row["reading"] == "valid"), row
        assert len(result.evidence) == 2


async def test_a_parser_that_rounds_integers_is_caught() -> None:
    found = await results("--round", only="frames")

    assert "18446744073709551617" in found["frames/the-seeds-four"].message


async def test_an_adapter_that_crashes_loses_one_line_and_is_started_anew() -> None:
    found = await results("--crash", "gate/complete-passes", only="gate")

    failed = {name: result.message for name, result in found.items() if result.word != "pass"}
    assert failed.keys() == {"gate/complete-passes"}
    assert "exit code 1: out of memory" in failed["gate/complete-passes"]


async def test_an_adapter_that_prints_something_else_is_told_so() -> None:
    found = select(checks("parser"), ["*sse/one-event"])
    work = check_parser(("/bin/sh", "-c", "read x; echo hello; cat >/dev/null"), strict=False)
    (result,) = (await work(found, Patience(), 1, None)).results

    assert result.word == "fail"
    assert "cannot be read" in result.message


async def test_a_line_that_the_adapter_skips_does_not_apply() -> None:
    skipping = """import json, sys
for line in sys.stdin:
    print(json.dumps({"case": json.loads(line)["case"], "skip": "no SSE here"}), flush=True)
"""
    found = select(checks("parser"), ["*sse/one-event"])
    work = check_parser((sys.executable, "-I", "-S", "-c", skipping), strict=False)
    (result,) = (await work(found, Patience(), 1, None)).results

    assert (result.word, result.message) == ("not-applicable", "the adapter skips it: no SSE here")


def test_members_that_a_parser_does_not_give_are_not_asked_for() -> None:
    row: Row = {"reading": "invalid", "decoded": None, "error": {"code": -32602, "path": "a"}}
    said = Said("methods/x", "invalid")

    assert difference(row, said, strict=False) == ""
    said.error = {"code": -32602, "path": "b"}
    assert 'expected {"code":-32602,"path":"a"}' in difference(row, said, strict=False)


@given(values)
def test_a_value_is_the_same_as_itself_after_a_round_trip(value: Any) -> None:
    assert same(value, msgspec.json.decode(msgspec.json.encode(value)))


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (0, False), (0, None), ("1", 1), ([], {}), ([1], [1, 2]), ({"a": 1}, {"b": 1})],
)
def test_values_of_different_kinds_are_not_the_same(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert not same(other, one)


def test_numbers_are_compared_by_their_exact_value() -> None:
    assert same(1, 1.0)
    assert not same(2**53 + 1, float(2**53))
    assert not same(2**64 + 1, 2**64)
