"""What is offered, what an answer means, and what a plugin answers (R-20, R-21)."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from executa_protocol.codec import encode
from executa_protocol.errors import DecodeFailure, StrictRefusal
from executa_protocol.handshake import (
    FALLBACK,
    HANDSHAKE_ID,
    Negotiated,
    host_offer,
    plugin_answer,
    read_answer,
    read_offer,
)
from executa_protocol.methods.core import PeerInfo
from executa_protocol.readings import STRICT
from tests.protocol.reading import Listening, encoded

SEED_REQUEST: dict[str, Any] = {
    "protocolVersion": "2.0",
    "clientInfo": {"name": "matrix-agent", "version": "1.0"},
    "capabilities": {
        "sampling": {
            "modalities": ["text"],
            "maxTokensPerCall": 8192,
            "maxCallsPerInvoke": 8,
            "responseFormat": ["json_object", "json_schema"],
        },
        "fileTransport": True,
    },
}
"""Seed lifecycle, v2 capability handshake, Request."""

SEED_ANSWER: dict[str, Any] = {
    "protocolVersion": "2.0",
    "server_info": {"name": "my-tool", "version": "0.1.0"},
    "capabilities": {"sampling": {}},
}
"""The same, Response."""


def answer(**members: Any) -> bytes:
    """The seed's answer with other members."""
    return encoded({**SEED_ANSWER, **members})


def refusal(data: bytes) -> str:
    """The requirement by which strict mode refuses an answer."""
    with pytest.raises(StrictRefusal) as caught:
        read_answer(data, STRICT)
    return caught.value.requirement


# --- The offer --------------------------------------------------------------------------------


def test_the_offer_is_the_seeds_with_the_keys_of_v2_1_beside_it() -> None:
    offer = json.loads(encode(host_offer()))
    added = {
        "agent": {"submodes": ["auto"]},
        "storage": {"kv": True, "files": True},
        "cancellation": {},
        "progress": {},
    }
    assert offer == SEED_REQUEST | {"capabilities": SEED_REQUEST["capabilities"] | added}
    assert HANDSHAKE_ID == 0


@pytest.mark.parametrize(
    ("flag", "key"),
    [("sampling", "sampling"), ("agent", "agent"), ("file_transport", "fileTransport")],
)
def test_a_flag_takes_its_key_away(flag: str, key: str) -> None:
    offer: Any = json.loads(encode(host_offer(**{flag: False})))  # type: ignore[arg-type]
    assert key not in offer["capabilities"]


def test_the_stores_share_a_key() -> None:
    def storage(*, kv: bool, files: bool) -> Any:
        offer = json.loads(encode(host_offer(storage=kv, files=files)))
        return offer["capabilities"].get("storage")

    assert storage(kv=True, files=False) == {"kv": True}
    assert storage(kv=False, files=True) == {"files": True}
    assert storage(kv=False, files=False) is None


def test_the_host_may_name_itself() -> None:
    assert host_offer(name="mine", version="3").client_info == PeerInfo("mine", "3")


# --- The answer -------------------------------------------------------------------------------


def test_the_seeds_answer_is_v2_in_both_modes() -> None:
    wanted = Negotiated(
        "2.0", frozenset({"sampling"}), {"sampling": {}}, PeerInfo("my-tool", "0.1.0")
    )
    assert read_answer(answer()) == read_answer(Raw(answer()), STRICT) == wanted
    assert wanted.is_v2


def test_version_2_1_is_v2_too() -> None:
    assert read_answer(answer(protocolVersion="2.1"), STRICT).is_v2


@pytest.mark.parametrize(
    "version", ["1.1", "1.0", "2", "2.2", "3.0", "", 2.0, 2, None, ["2.0"], {"major": 2}]
)
def test_any_other_version_is_no_v2_answer(version: Any) -> None:
    with pytest.raises(DecodeFailure) as caught:
        read_answer(answer(protocolVersion=version))
    assert caught.value.path == "protocolVersion"


@pytest.mark.parametrize("data", [b"{}", b"[]", b"null", b'"2.0"', b"7", b"{", b"", b"\xff"])
def test_what_is_no_object_with_a_version_is_no_v2_answer(data: bytes) -> None:
    with pytest.raises(DecodeFailure):
        read_answer(data)


def test_a_version_in_a_message_is_cut_short() -> None:
    with pytest.raises(DecodeFailure) as caught:
        read_answer(answer(protocolVersion="x" * 1000))
    assert len(str(caught.value)) < 120


def test_fallback_is_1_1_without_reverse_calls() -> None:
    assert (FALLBACK.version, FALLBACK.is_v2, FALLBACK.keys) == ("1.1", False, frozenset())


def test_members_may_be_absent() -> None:
    bare = read_answer(b'{"protocolVersion":"2.0"}', STRICT)
    assert bare == Negotiated("2.0")


# --- Spellings of the field -------------------------------------------------------------------


def departs(requirement: str, data: bytes) -> Negotiated:
    """Read an answer that departs from one requirement, in both modes."""
    reader = Listening()
    found = read_answer(data, reader)
    assert reader.ids == [requirement]
    assert refusal(data) == requirement
    return found


def test_server_info_may_be_spelled_server_info_in_camel_case() -> None:
    members = {key: item for key, item in SEED_ANSWER.items() if key != "server_info"}
    found = departs("HAND-001", encoded(members | {"serverInfo": {"name": "t", "version": "1"}}))
    assert found.server == PeerInfo("t", "1")


def test_beside_the_right_name_the_other_is_a_copy() -> None:
    found = read_answer(answer(serverInfo={"name": "other"}), STRICT)
    assert found.server == PeerInfo("my-tool", "0.1.0")


def test_the_negotiated_set_is_the_union_of_both_members() -> None:
    found = departs(
        "HAND-002", answer(client_capabilities={"storage": {"kv": True}, "sampling": 1})
    )
    assert found.keys == {"sampling", "storage"}
    assert found.options == {
        "sampling": {},
        "storage": {"kv": True},
    }  # the seed's member goes first
    empty = departs("HAND-002", answer(client_capabilities={"agent": {}}, capabilities={}))
    assert empty.keys == {"agent"}


def test_capabilities_may_be_a_list_of_names() -> None:
    found = departs("HAND-003", answer(capabilities=["sampling", "agent", 7, None, ["x"]]))
    assert found.options == {"sampling": {}, "agent": {}}


@pytest.mark.parametrize("value", [None, True, "sampling", 7])
def test_capabilities_that_are_no_object_are_read_as_empty(value: Any) -> None:
    assert departs("HAND-004", answer(capabilities=value)).keys == frozenset()


@pytest.mark.parametrize(
    "value", [None, "my-tool", {}, {"name": 7}, {"name": "t", "version": 1}, ["my-tool"]]
)
def test_server_info_without_names_is_none(value: Any) -> None:
    assert departs("HAND-005", answer(server_info=value)).server is None


def test_a_version_of_the_server_may_be_absent() -> None:
    assert read_answer(answer(server_info={"name": "t"}), STRICT).server == PeerInfo("t", "")


@pytest.mark.parametrize(
    ("value", "taken"),
    [({}, True), (True, True), ([], True), (0, True), ("", True), (False, False), (None, False)],
)
def test_any_value_but_false_and_null_takes_its_key(value: Any, *, taken: bool) -> None:
    found = read_answer(answer(capabilities={"agent": value}), STRICT)
    assert ("agent" in found.keys) is taken


# --- The plugin's side ------------------------------------------------------------------------


def test_the_offer_is_read_with_its_options() -> None:
    offered = read_offer(encode(host_offer()))
    assert offered["storage"] == {"kv": True, "files": True}
    assert offered["fileTransport"] is True
    assert set(read_offer(encoded(SEED_REQUEST))) == {"sampling", "fileTransport"}


@pytest.mark.parametrize("version", ["1.1", "1.0", "2.0", "2.1", "2", "2.9.1"])
def test_an_offer_of_major_version_1_or_2_is_read(version: str) -> None:
    assert read_offer(encoded(SEED_REQUEST | {"protocolVersion": version}))


@pytest.mark.parametrize("version", ["3.0", "0.9", "", "20", 2.0, None, ["2.0"]])
def test_any_other_offer_is_refused_by_its_version(version: Any) -> None:
    with pytest.raises(DecodeFailure) as caught:
        read_offer(encoded(SEED_REQUEST | {"protocolVersion": version}))
    assert caught.value.path == "protocolVersion"


@pytest.mark.parametrize("data", [b"{}", b"[]", b"null", b"{"])
def test_what_is_no_offer_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeFailure):
        read_offer(data)


@pytest.mark.parametrize("value", [None, [], "sampling", True])
def test_an_offer_without_capabilities_offers_nothing(value: Any) -> None:
    assert read_offer(encoded({"protocolVersion": "2.0", "capabilities": value})) == {}
    assert read_offer(b'{"protocolVersion":"2.0"}') == {}


def test_what_is_offered_as_false_is_not_offered() -> None:
    capabilities: Any = {"fileTransport": False, "agent": None, "sampling": {}}
    offered = read_offer(encoded({"protocolVersion": "2.0", "capabilities": capabilities}))
    assert offered == {"sampling": {}}
    answered = plugin_answer("t", "1", offered, ["fileTransport", "sampling"])
    assert answered["capabilities"] == {"sampling": {}}


def test_the_answer_lists_what_is_wanted_and_offered() -> None:
    offered = read_offer(encode(host_offer()))
    wanted = ["sampling", "agent", "video", "sampling"]
    assert plugin_answer("my-tool", "0.1.0", offered, wanted) == SEED_ANSWER | {
        "capabilities": {"sampling": {}, "agent": {}}
    }


@given(st.sets(st.sampled_from(["sampling", "agent", "storage", "video", "progress"])))
def test_an_answer_of_ours_is_read_strictly_as_it_was_meant(wanted: set[str]) -> None:
    offered = read_offer(encode(host_offer()))
    found = read_answer(encode(plugin_answer("t", "1", offered, wanted)), STRICT)
    assert found.keys == wanted & set(offered)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just("2.0"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
members = st.sampled_from(
    ["protocolVersion", "server_info", "serverInfo", "capabilities", "client_capabilities"]
)


@given(st.dictionaries(members, values))
def test_any_answer_is_negotiated_or_a_failure_of_ours(value: dict[str, Any]) -> None:
    value.setdefault("protocolVersion", "2.0")
    for read in (read_answer, read_offer):
        try:
            found = read(msgspec.json.encode(value))
        except DecodeFailure:
            continue
        assert isinstance(found, Negotiated | dict)
