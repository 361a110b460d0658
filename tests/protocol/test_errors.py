"""The exception tree: what catches what, and what each says."""

import inspect
import re
from typing import Any

import pytest

from executa_protocol import errors
from executa_protocol.codes import TABLE, rpc_error
from executa_protocol.errors import (
    AgentError,
    CallCancelled,
    CallFailed,
    CallTimeout,
    ConnectionLost,
    DecodeFailure,
    ExecutaError,
    FrameTooLarge,
    LocalError,
    NotEncodable,
    PeerViolation,
    RpcError,
    SamplingError,
    StorageError,
    StrictRefusal,
    UsageError,
    WriteQueueFull,
)


def tree() -> dict[str, str]:
    """The parent of each class, as the module's docstring draws them."""
    found: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ((?:│   |    )*)(?:[├└]── )?([A-Z]\w+)", line)
        if match:
            level = len(match[1]) // 4 + ("── " in line)
            path[level:] = [match[2]]
            found[match[2]] = path[-2] if level else ""
    return found


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    classes = [
        item
        for _, item in inspect.getmembers(errors, inspect.isclass)
        if issubclass(item, Exception)
    ]
    drawn = tree()
    assert drawn == {
        item.__name__: "" if item is ExecutaError else item.__bases__[0].__name__
        for item in classes
    }


def test_an_agents_error_is_caught_as_a_sampling_error() -> None:
    with pytest.raises(SamplingError):
        raise AgentError(-32044, "unknown session")
    assert not issubclass(StorageError, SamplingError)


def test_a_time_out_is_caught_as_pythons_own() -> None:
    with pytest.raises(TimeoutError):
        raise CallTimeout("late")


def test_local_misuse_and_peer_violation_have_nothing_in_common_but_the_root() -> None:
    assert not issubclass(LocalError, PeerViolation | CallFailed | RpcError)
    assert not issubclass(PeerViolation, CallFailed | RpcError)
    for kind in (UsageError, NotEncodable, FrameTooLarge, WriteQueueFull):
        assert issubclass(kind, LocalError)


def test_sizes_are_told_and_what_to_do() -> None:
    large = FrameTooLarge(20_000_000, 16_777_216)
    assert (large.size, large.limit) == (20_000_000, 16_777_216)
    assert str(large) == (
        "the frame has 20,000,000 bytes and the line cap is 16,777,216; "
        "send less, or a file where the protocol has file transport"
    )
    full = WriteQueueFull(100, 1000)
    assert (full.queued, full.limit) == (100, 1000)
    assert str(full) == "the other side does not read: 100 bytes wait and the cap is 1,000"


def test_a_violation_names_its_path_or_its_requirement() -> None:
    failure = DecodeFailure("tools[0].name: required", path="tools[0].name")
    assert (failure.path, str(failure)) == ("tools[0].name", "tools[0].name: required")
    assert DecodeFailure("no JSON").path == ""
    refusal = StrictRefusal("WIRE-007", "the id is a string")
    assert (refusal.requirement, str(refusal)) == ("WIRE-007", "WIRE-007: the id is a string")


@pytest.mark.parametrize("kind", [CallFailed, ConnectionLost, CallTimeout, CallCancelled])
@pytest.mark.parametrize("written", [True, False, None])
def test_a_failed_call_says_whether_it_was_written(
    kind: type[CallFailed], *, written: bool | None
) -> None:
    assert kind("gone", written=written).written is written


@pytest.mark.parametrize(
    ("data", "kept", "symbol"),
    [
        (None, {}, ""),
        ({"errorCode": "QUOTA"}, {"errorCode": "QUOTA"}, "QUOTA"),
        ({"errorName": "B"}, {"errorName": "B"}, "B"),
        ({"error_name": "C", "errorName": "B"}, {"error_name": "C", "errorName": "B"}, "B"),
        ({"errorCode": 7, "error_name": "C"}, {"errorCode": 7, "error_name": "C"}, "C"),
        ("text", {"value": "text"}, ""),
        ([1], {"value": [1]}, ""),
        (0, {"value": 0}, ""),
    ],
)
def test_an_error_of_the_wire_keeps_what_it_came_with(
    data: Any, kept: dict[str, Any], symbol: str
) -> None:
    error = RpcError(-32002, "no more", data)
    assert (error.code, error.message, error.data, error.symbol) == (
        -32002,
        "no more",
        kept,
        symbol,
    )
    assert str(error) == "[-32002] no more"


def test_every_code_raises_an_error_of_the_wire() -> None:
    for row in TABLE:
        error = rpc_error(row.number, "m")
        assert isinstance(error, RpcError)
        assert error.code == row.number
