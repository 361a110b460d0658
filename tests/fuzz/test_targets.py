"""The fuzzer's targets over the golden lines, a few random bytes, and what was found."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.making import PIECES, expand, pieces
from tests.fuzz.targets import TARGETS, Target, close_loop
from tests.protocol.golden import chapters, data_of, rows
from tests.support import reference_json

SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz.py"

every_target = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)

FOUND = [
    # A frame whose event is there twice, the first time as an object.
    ("frames", b'\xd0{"event":{},"event":"choices"}'),
    ("frames", b"xxxx:xx\xe6\0\0\0\0xx:xx\xe6\0\0\0\0\0\0\0\0\0\0\0xxx"),
    # An id or a method that is there twice, the first time of a wrong type.
    ("lines", b'\0{"jsonrpc":"2.0","id":[],"id":7,"method":5,"method":"x"}'),
    # 10 to the 348 with an exponent of two digits, in a line that is only scanned.
    ("content", b"\xf9\xf9\xfa"),
    # A lone surrogate in a value that a later one replaces.
    ("content", b'{"a":"\\ud800","a":1}'),
]


@pytest.fixture(autouse=True)
def one_loop() -> Iterator[None]:
    """`fuzz_peer` keeps one; here it goes with the test."""
    yield
    close_loop()


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_what_was_found_stays_fixed(name: str, data: bytes) -> None:
    TARGETS[name](data)


@every_target
def test_a_target_takes_every_golden_line(target: Target) -> None:
    for param in rows(*sorted(chapters())):
        data = data_of(param.values[0])[:512]
        target(data)
        target(b"\xd0" + data)


@every_target
@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=120) | st.lists(st.sampled_from(list(PIECES))).map(bytes))
def test_a_target_takes_any_bytes(target: Target, data: bytes) -> None:
    target(data)
    target(b"")


def test_pieces_are_the_whole() -> None:
    data = bytes(range(97))
    for count in (0, 1, 5, 97, 1000):
        assert b"".join(pieces(data, count)) == data
    assert expand(b"a\xfdb") == b"a\xef\xbb\xbfb"
    assert len(expand(b"\xfb" * 100)) < 20_000


@pytest.mark.parametrize(
    ("line", "accepted"),
    [
        (b'{"a":[1,2.5,"\\ud83e\\udd9c"]}', True),
        (b'{"a":"\\ud800"}', False),
        (b'{"a":"\\ud800","a":1}', False),
        (b"1e999", False),
        (b"NaN", False),
        (b"\xff", False),
        (b"[" * 128 + b"]" * 128, True),
        (b"[" * 129 + b"]" * 129, False),
        (b'"' + b"[" * 500 + b'\\""', True),
    ],
)
def test_the_reference_is_as_strict_as_the_wire(line: bytes, *, accepted: bool) -> None:
    assert reference_json.accepts(line) is accepted


def fuzz(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False
    )


def test_the_command_lists_its_targets() -> None:
    listing = fuzz("--list").stdout
    assert all(name in listing for name in TARGETS)


def test_the_command_reproduces_a_finding_without_the_fuzzer(tmp_path: Path) -> None:
    finding = tmp_path / "finding"
    finding.write_bytes(json.dumps({"a": 1}).encode())
    done = fuzz("--target", "content", "--reproduce", str(finding))
    assert (done.returncode, done.stdout) == (0, "no finding\n")
    assert fuzz("--reproduce", str(finding)).returncode == 2


def test_without_the_fuzzer_the_command_says_what_to_do(tmp_path: Path) -> None:
    # A module of that name that cannot be loaded stands in for none.
    (tmp_path / "atheris.py").write_text("raise ImportError")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--runs", "1"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )
    assert done.returncode == 2
    assert "uv run --group fuzz" in done.stderr
