"""File transport: what a pointer, its file and the content must be (R-12)."""

import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from executa_protocol.envelope import Message, parse, pointer_frame
from executa_protocol.errors import PeerViolation
from executa_protocol.filetransport import (
    FILE_MODE,
    OPEN_FLAGS,
    FileTransportFault,
    check_content,
    check_opened,
    check_pointer,
    check_size,
    should_spill,
)
from executa_protocol.limits import MAX_FILE_TRANSPORT, SPILL_THRESHOLD
from executa_protocol.readings import STRICT
from tests.protocol.reading import Listening

UID = 1000


@dataclass
class Status:
    """What fstat told."""

    st_mode: int = stat.S_IFREG | FILE_MODE
    st_uid: int = UID
    st_size: int = 10


FINE = Status()


def pointer(line: bytes) -> str:
    """The path in a pointer frame."""
    message = parse(line)
    if not isinstance(message, Message):
        raise FileTransportFault(message.reason if message else "blank")
    return check_pointer(message)


def test_only_a_response_above_the_threshold_goes_by_file_and_only_if_it_was_offered() -> None:
    assert not should_spill(SPILL_THRESHOLD, offered=True)
    assert should_spill(SPILL_THRESHOLD + 1, offered=True)
    assert not should_spill(SPILL_THRESHOLD + 1, offered=False)


@pytest.mark.parametrize("key", [b"__file_transport", b"__trans_file__"])
def test_a_pointer_is_read_in_either_spelling(key: bytes) -> None:
    assert pointer(b'{"jsonrpc":"2.0","id":7,"%b":"/tmp/x.json"}' % key) == "/tmp/x.json"  # noqa: S108


def test_the_pointer_that_is_written_is_the_pointer_that_is_read() -> None:
    assert pointer(pointer_frame("a", "/x/é.json")) == "/x/é.json"


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"__file_transport":"x.json"}',
        b'{"jsonrpc":"2.0","id":7,"__file_transport":""}',
        b'{"jsonrpc":"2.0","id":7,"__file_transport":"~/x.json"}',
        b'{"jsonrpc":"2.0","id":7,"__file_transport":"/x\\u0000y"}',
        b'{"jsonrpc":"2.0","id":7,"__file_transport":"/x","result":{}}',
        b'{"jsonrpc":"2.0","id":7,"__file_transport":"/x","error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","id":7,"__file_transport":"/x","method":"m"}',
        b'{"jsonrpc":"2.0","id":7,"result":{}}',
    ],
)
def test_a_pointer_is_an_absolute_path_that_stands_alone(line: bytes) -> None:
    with pytest.raises(FileTransportFault):
        pointer(line)


@pytest.mark.parametrize("beside", [{"method": "m"}, {"result": Raw(b"1")}, {"error": Raw(b"{}")}])
def test_a_message_with_anything_beside_the_pointer_is_no_pointer(beside: dict[str, Any]) -> None:
    with pytest.raises(FileTransportFault, match="beside"):
        check_pointer(Message(id=7, pointer="/x", **beside))


def test_a_regular_file_of_ours_in_an_allowed_directory_may_be_read() -> None:
    check_opened(FINE, "/a/b/x.json", ["/nowhere", "/a"], UID)
    check_opened(FINE, "/x.json", ["/"], UID)
    check_opened(FINE, "/a/x.json", ["/a/"], UID)


@pytest.mark.parametrize(
    "kind", [stat.S_IFDIR, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFLNK]
)
def test_nothing_but_a_regular_file_may_be_read(kind: int) -> None:
    with pytest.raises(FileTransportFault, match="regular file"):
        check_opened(replace(FINE, st_mode=kind | FILE_MODE), "/a/x.json", ["/a"], UID)


def test_a_file_of_another_user_may_not_be_read() -> None:
    with pytest.raises(FileTransportFault, match="another user"):
        check_opened(replace(FINE, st_uid=0), "/a/x.json", ["/a"], UID)


@pytest.mark.parametrize("path", ["/ab/x.json", "/a", "/x.json", "a/x.json", ""])
def test_a_file_outside_the_allowed_directories_may_not_be_read(path: str) -> None:
    with pytest.raises(FileTransportFault, match="outside"):
        check_opened(FINE, path, ["/a", ""], UID)


def test_a_file_may_fill_the_cap_and_not_one_byte_more() -> None:
    check_opened(replace(FINE, st_size=MAX_FILE_TRANSPORT), "/a/x", ["/a"], UID)
    with pytest.raises(FileTransportFault, match="cap"):
        check_opened(replace(FINE, st_size=MAX_FILE_TRANSPORT + 1), "/a/x", ["/a"], UID)
    check_size(3, 3)
    with pytest.raises(FileTransportFault):
        check_size(4, 3)


def test_the_flags_follow_no_link_and_wait_for_no_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    descriptor = os.open(tmp_path / "pipe", OPEN_FLAGS)
    try:
        with pytest.raises(FileTransportFault):
            check_opened(os.fstat(descriptor), str(tmp_path / "pipe"), [str(tmp_path)], os.getuid())
    finally:
        os.close(descriptor)
    with pytest.raises(OSError, match="link"):
        os.open(tmp_path / "link", OPEN_FLAGS)


def response(identity: str = "7", rest: str = '"result":{}') -> bytes:
    """A file's content."""
    return f'{{"jsonrpc":"2.0","id":{identity},{rest}}}'.encode()


def test_the_content_is_the_response_to_the_same_id() -> None:
    assert check_content(response(), 7).id == 7
    assert check_content(response('"a"'), "a").id == "a"
    assert check_content(response(rest='"error":{"code":1,"message":""}'), 7).id == 7


def test_the_content_may_be_written_over_several_lines() -> None:
    assert check_content(b'{\n  "jsonrpc": "2.0",\n  "id": 7,\n  "result": 1\n}\n', 7).id == 7


@pytest.mark.parametrize(("found", "expected"), [('"7"', 7), ("7.0", 7), ("7", "7")])
def test_an_id_of_another_json_type_is_tolerated_and_refused_in_strict_mode(
    found: str, expected: object
) -> None:
    reader = Listening()
    check_content(response(found), expected, reader)
    assert reader.ids == ["WIRE-007"]
    with pytest.raises(FileTransportFault, match="WIRE-007"):
        check_content(response(found), expected, STRICT)


@pytest.mark.parametrize(
    ("found", "expected"),
    [("8", 7), ("true", 1), ("1", True), ("null", 7), ("7", None), ('"07"', 7), ("7.5", 7)],
)
def test_the_response_to_another_id_is_refused(found: str, expected: object) -> None:
    with pytest.raises(FileTransportFault, match="another id"):
        check_content(response(found), expected)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"[]",
        b"{",
        b'{"jsonrpc":"2.0","id":7,"result":"\xff"}',
        response(rest='"__file_transport":"/a/y.json"'),
        response(rest='"__trans_file__":"/a/y.json"'),
        response(rest='"result":{},"__file_transport":"/a/y.json"'),
        response(rest='"result":{},"__trans_file__":"/a/y.json"'),
        response(rest='"method":"storage/get"'),
        response(rest='"x":1'),
    ],
)
def test_content_that_is_no_response_is_refused(content: bytes) -> None:
    with pytest.raises(FileTransportFault) as caught:
        check_content(content, 7)
    assert isinstance(caught.value, PeerViolation)


@given(st.binary(), st.none() | st.integers() | st.text())
def test_arbitrary_content_raises_nothing_but_the_fault(content: bytes, expected: object) -> None:
    try:
        message = check_content(content, expected)
    except FileTransportFault:
        return
    assert message.id == expected
