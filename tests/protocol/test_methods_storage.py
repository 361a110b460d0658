"""`storage/*` and `files/*`: keys, limits, spellings and answers."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from executa_protocol.errors import StrictRefusal
from executa_protocol.limits import FILE_MAX_BYTES, STORAGE_VALUE_BYTES
from executa_protocol.methods import METHODS, InvalidParams
from executa_protocol.methods.files import (
    read_download_url,
    read_download_url_result,
    read_files_delete,
    read_files_list,
    read_upload_begin,
    read_upload_begin_result,
    read_upload_complete,
)
from executa_protocol.methods.storage import (
    StorageGetResult,
    StorageListResult,
    read_get,
    read_set,
    read_storage_delete,
    read_storage_list,
)
from executa_protocol.methods.storage_keys import key_fault, prefix_fault
from executa_protocol.readings import STRICT, TOLERANT
from tests.protocol.reading import Listening, encoded, refusal_code

SET: dict[str, Any] = {"key": "notes/1", "value": {"n": 1}, "scope": "user"}
UPLOAD: dict[str, Any] = {"path": "a.txt", "size_bytes": 1, "content_type": "text/plain"}
STORAGE_METHODS = [name for name in METHODS if METHODS[name].chapter == "storage"]
INVISIBLE = "\x00\x1f\x7f\x85\u00ad\u061c\u180e\u200b\u200d\u200e\u202e\u2028\u2060\u2066\ufeff"


# --- Keys --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    ["a", "a/b/c", ".hidden", "...", "a b", "ключ/日本", "❤️", "a" * 128, "/".join(["a" * 127] * 8)],
)
def test_an_ordinary_key_is_allowed(key: str) -> None:
    assert key_fault(key) is None
    assert read_get(encoded(key=key, scope="user"), STRICT).key == key


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("", "empty"),
        ("/a", "relative"),
        ("a/", "empty segment"),
        ("a//b", "empty segment"),
        (".", "segment '.'"),
        ("a/../b", "segment '..'"),
        ("a\\b", "backslash"),
        (" a", "space"),
        ("a\u3000", "space"),
        ("a" * 129, "129 characters"),
        ("b/" + "a" * 129, "129 characters"),
        ("/".join(["a" * 127] * 8) + "/b", "1,025 characters"),
    ],
)
def test_a_key_that_breaks_a_rule_is_refused_with_the_rule(key: str, word: str) -> None:
    fault = key_fault(key)
    assert fault is not None
    assert word in fault
    with pytest.raises(InvalidParams) as caught:
        read_get(encoded(key=key, scope="user"))
    assert (caught.value.error.code, caught.value.path) == (-32027, "key")


@pytest.mark.parametrize("char", INVISIBLE)
def test_an_invisible_character_is_refused_by_its_number(char: str) -> None:
    assert key_fault(f"a{char}b") == f"it has the invisible character U+{ord(char):04X}"
    assert prefix_fault(f"a{char}b") is not None


@pytest.mark.parametrize("prefix", ["", "a", "a/", "a/b", ".", "a/..", "a" * 128])
def test_what_may_begin_a_key_is_a_prefix(prefix: str) -> None:
    assert prefix_fault(prefix) is None


@pytest.mark.parametrize("prefix", ["/", "a//", "../a", "a/./b", "a\\", "a" * 129, "a" * 1025])
def test_what_begins_no_key_is_no_prefix(prefix: str) -> None:
    assert prefix_fault(prefix) is not None
    for read in (read_storage_list, read_files_list):
        with pytest.raises(InvalidParams) as caught:
            read(encoded(prefix=prefix, scope="user"))
        assert (caught.value.error.code, caught.value.path) == (-32027, "prefix")


@given(st.text(min_size=1, max_size=40))
def test_each_beginning_of_a_key_is_a_prefix(key: str) -> None:
    if key_fault(key) is None:
        for end in range(len(key) + 1):
            prefix = key[:end]
            assert prefix_fault(prefix) is None or prefix != prefix.strip()


# --- Values and limits ---------------------------------------------------------------


@pytest.mark.parametrize("value", [b"null", b"1.0", b"12345678901234567890123", b'"x"', b"[]"])
def test_a_value_passes_as_it_stands(value: bytes) -> None:
    params = read_set(b'{"key":"a","scope":"user","value":' + value + b"}", STRICT)
    assert bytes(params.value) == value


def test_a_set_without_a_value_is_refused() -> None:
    with pytest.raises(InvalidParams, match="value") as caught:
        read_set(encoded(key="a", scope="user"))
    assert caught.value.error.code == -32028


def test_a_value_may_have_256_kibibytes_and_not_one_byte_more() -> None:
    read_set(encoded(SET | {"value": "x" * (STORAGE_VALUE_BYTES - 2)}), STRICT)
    with pytest.raises(InvalidParams, match="262,145 bytes") as caught:
        read_set(encoded(SET | {"value": "x" * (STORAGE_VALUE_BYTES - 1)}))
    assert caught.value.error.code == -32025


@pytest.mark.parametrize(
    ("read", "members", "name", "inside", "outside"),
    [
        (read_set, SET, "ttl_seconds", [1, 31_536_000], [0, 31_536_001, "1"]),
        (read_set, SET, "tags", [[], ["t"] * 32], [["t"] * 33, "t"]),
        (read_storage_list, {}, "limit", [1, 1000], [0, 1001]),
        (read_files_list, {}, "limit", [1, 1000], [0, 1001]),
        (read_download_url, {"path": "a"}, "ttl_seconds", [1, 3600], [0, 3601]),
        (read_upload_begin, UPLOAD, "content_type", ["t" * 120], ["", "t" * 121]),
        (read_upload_begin, UPLOAD, "size_bytes", [0, FILE_MAX_BYTES], [-1, 1.5]),
        (read_upload_complete, {"path": "a"}, "size_bytes", [0, FILE_MAX_BYTES], [-1]),
    ],
)
def test_each_limit_holds_at_it_and_one_past_it(
    read: Any, members: dict[str, Any], name: str, inside: list[Any], outside: list[Any]
) -> None:
    for value in inside:
        assert (
            getattr(read(encoded(members | {"scope": "user", name: value}), STRICT), name) == value
        )
    for value in outside:
        with pytest.raises(InvalidParams) as caught:
            read(encoded(members | {"scope": "user", name: value}), TOLERANT)
        assert (caught.value.error.code, caught.value.path) == (-32028, name)


def test_a_file_over_256_mebibytes_is_too_large() -> None:
    for read in (read_upload_begin, read_upload_complete):
        with pytest.raises(InvalidParams, match="268,435,457") as caught:
            read(encoded(UPLOAD | {"size_bytes": FILE_MAX_BYTES + 1, "scope": "user"}))
        assert caught.value.error.code == -32025


@pytest.mark.parametrize("read", [read_upload_begin, read_download_url, read_files_delete])
def test_a_path_follows_the_rules_of_keys(read: Any) -> None:
    with pytest.raises(InvalidParams) as caught:
        read(encoded(path="../a", size_bytes=1, scope="user"), TOLERANT)
    assert (caught.value.error.code, caught.value.path) == (-32027, "path")


# --- Spellings -------------------------------------------------------------------------


def test_an_absent_scope_reads_as_the_narrowest_and_is_refused_in_strict_mode() -> None:
    reader = Listening()
    assert read_get(encoded(key="a"), reader).scope == "tool"
    assert reader.ids == ["STOR-001"]
    with pytest.raises(StrictRefusal, match="STOR-001"):
        read_get(encoded(key="a"), STRICT)


@pytest.mark.parametrize(
    ("read", "members", "old", "new", "requirement"),
    [
        (read_set, SET, "expires_in", "ttl_seconds", "STOR-002"),
        (read_download_url, {"path": "a"}, "expires_in", "ttl_seconds", "STOR-002"),
        (
            read_upload_begin,
            {"path": "a", "content_type": "t"},
            "expected_bytes",
            "size_bytes",
            "STOR-003",
        ),
        (read_upload_complete, {"path": "a"}, "expected_bytes", "size_bytes", "STOR-003"),
    ],
)
def test_another_spelling_is_tolerated(
    read: Any, members: dict[str, Any], old: str, new: str, requirement: str
) -> None:
    text = encoded(members | {"scope": "user", old: 60})
    reader = Listening()
    assert getattr(read(text, reader), new) == 60
    assert reader.ids == [requirement]
    with pytest.raises(StrictRefusal, match=requirement):
        read(text, STRICT)


def test_a_value_survives_a_renaming_beside_it_digit_by_digit() -> None:
    text = b'{"key":"a","scope":"user","value":12345678901234567890.50,"expires_in":60}'
    assert bytes(read_set(text).value) == b"12345678901234567890.50"


def test_delete_takes_an_etag() -> None:
    assert read_storage_delete(encoded(key="a", scope="user", if_match="e"), STRICT).if_match == "e"
    assert read_files_delete(encoded(path="a", scope="user", if_match="e"), STRICT).if_match == "e"


def test_a_token_of_the_older_dialect_is_dropped() -> None:
    params = read_get(encoded({"key": "a", "scope": "user", "storage_token": "t"}), STRICT)
    assert b"storage_token" not in msgspec.json.encode(params)


# --- Answers ------------------------------------------------------------------------------


def test_a_miss_is_null_false_and_a_null_etag() -> None:
    miss = StorageGetResult(value=Raw(b"null"), exists=False, etag=None)
    assert msgspec.json.decode(msgspec.json.encode(miss)) == {
        "value": None,
        "exists": False,
        "etag": None,
    }


def test_the_last_page_says_so() -> None:
    page = StorageListResult(items=[])
    assert msgspec.json.encode(page) == b'{"items":[],"next_cursor":null}'


def test_both_spellings_of_an_upload_url_are_read() -> None:
    both = encoded(put_url="p", presigned_url="p", upload_id="u", headers={"a": "b"})
    assert read_upload_begin_result(both, STRICT).put_url == "p"
    reader = Listening()
    result = read_upload_begin_result(encoded(presigned_url="p", fields={}), reader)
    assert (result.put_url, result.headers, result.fields) == ("p", {}, {})
    assert reader.ids == ["STOR-004"]


def test_both_spellings_of_a_download_url_are_read() -> None:
    assert read_download_url_result(encoded(url="u", get_url="u"), STRICT).url == "u"
    reader = Listening()
    assert read_download_url_result(encoded(get_url="u", expires_at=1), reader).url == "u"
    assert reader.ids == ["STOR-005"]
    with pytest.raises(InvalidParams):
        read_download_url_result(encoded(expires_at=1))


@pytest.mark.parametrize("name", [n for n in STORAGE_METHODS if METHODS[n].served])
@given(data=st.binary(max_size=60))
def test_any_bytes_raise_nothing_but_invalid_params(name: str, data: bytes) -> None:
    read = METHODS[name].read
    assert read is not None
    assert refusal_code(lambda: read(data, TOLERANT)) in {None, -32025, -32027, -32028}
