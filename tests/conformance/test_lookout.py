"""The lookout: every line that crosses, read strictly; the kit's own must be without fault."""

from typing import Any

import pytest

from executa_conformance.lookout import KitFault, Lookout
from executa_conformance.sightings import SCHEMA, VALUE
from executa_protocol.codec import encode
from executa_protocol.framing import BOM

Object = dict[str, Any]


def line(**members: Any) -> bytes:
    """A message as a line."""
    return encode({"jsonrpc": "2.0", **members}) + b"\n"


def asked(method: str, identity: Any = 1, params: Object | None = None) -> Lookout:
    """A lookout that has seen the kit ask this."""
    lookout = Lookout()
    more = {} if params is None else {"params": params}
    lookout.sending(line(id=identity, method=method, **more))
    return lookout


def seen(lookout: Lookout, data: bytes) -> list[tuple[str, bool]]:
    """What a line of the subject breaks, and whether that is tolerated."""
    return [(each.requirement, each.tolerated) for each in lookout.received(data)[1]]


# --- The kit's own -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        line(id=1, method="invoke", params={"arguments": {}}),
        line(id=1, method="invoke", params={"tool": "echo", "arguments": []}),
        line(id=None, method="describe"),
        line(id=1, method="executa/cancel", params={"reason": "x"}),
        line(id="r1", error={"code": "x", "message": "y"}),
        b'{"id":1,"method":"describe"}\n',
        b"not json\n",
    ],
)
def test_a_line_of_the_kits_own_that_is_wrong_is_the_kits_fault(data: bytes) -> None:
    with pytest.raises(KitFault):
        Lookout().sending(data)


def test_an_answer_of_the_kits_is_held_against_the_schema_of_what_was_asked() -> None:
    lookout = Lookout()
    context = {"invoke_id": "0" * 32}
    params = {"key": "k", "scope": "tool", "context": context}
    assert seen(lookout, line(id="r1", method="storage/get", params=params)) == []

    with pytest.raises(KitFault, match=r"storage\.get\.result"):
        lookout.sending(line(id="r1", result={"value": 1}))


# --- The subject's -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (line(id=1, result={"status": "ready"}), []),
        (line(id=1, result={"status": "healthy"}), [("CORE-002", True)]),
        (line(id=1, result={"status": "fine"}), [(SCHEMA, False)]),
        (line(id="1", result={"status": "ready"}), [("WIRE-007", True)]),
        (line(id=2, result={"status": "ready"}), [("WIRE-016", False)]),
        (line(id=1, result={"status": "ready"}, error=None), [("WIRE-003", True)]),
        (b'{"id":1,"result":{"status":"ready"}}\n', [("WIRE-001", True)]),
        (BOM + line(id=1, result={"status": "ready"}), [("WIRE-009", False)]),
        (line(id=1, error={"code": -32601}), [("WIRE-019", False)]),
        (line(id=1, __file_transport="/tmp/x"), [("WIRE-020", False)]),  # noqa: S108 - never read
        (line(id=1), [("WIRE-018", False)]),
        (line(id=9, method=17), [("WIRE-017", False)]),
        (b"Welcome!\n", [("WIRE-010", False)]),
        (b"[1]\n", [("WIRE-010", False)]),
        (b'{"id":1,"result":{"status":\n', [("WIRE-009", False)]),
        (b'{"jsonrpc":"2.0","id":1,"result":NaN}\n', [("WIRE-012", False)]),
        (b'{"jsonrpc":"2.0","id":1,"result":1e999}\n', [("WIRE-012", False)]),
        (b'{"jsonrpc":"2.0","id":1,"result":"\\ud800"}\n', [("WIRE-012", False)]),
        (b'{"jsonrpc":"2.0","id":1,"result":"\xff"}\n', [("WIRE-009", False)]),
        (b'{"a":' + b"[" * 200 + b"]" * 200 + b"}\n", [("WIRE-013", False)]),
        (b"\n", []),
    ],
)
def test_what_a_line_breaks_is_named(data: bytes, found: list[tuple[str, bool]]) -> None:
    assert seen(asked("health"), data) == found


def test_a_second_answer_is_told_from_one_to_nobody() -> None:
    lookout = asked("health")
    answer = line(id=1, result={"status": "ready"})

    assert seen(lookout, answer) == []
    assert seen(lookout, answer) == [("WIRE-014", False)]
    assert lookout.answers == [("health", {"status": "ready"})]


def test_an_error_without_an_id_answers_a_line_that_had_none() -> None:
    error = {"code": -32700, "message": "no JSON"}

    assert seen(Lookout(), line(id=None, error=error)) == []
    assert seen(Lookout(), line(id=None, result={})) == [("WIRE-016", False)]


def test_requests_of_one_id_may_follow_each_other_but_not_be_open_together() -> None:
    lookout = Lookout()
    ask = line(id="r1", method="web/search", params={})

    assert seen(lookout, ask) == []
    assert seen(lookout, ask) == [("WIRE-015", False)]
    lookout.sending(line(id="r1", error={"code": -32601, "message": "no"}))
    assert seen(lookout, ask) == []


@pytest.mark.parametrize(
    ("method", "params", "found"),
    [
        ("storage/set", {"key": "k", "value": 1, "scope": "tool"}, []),
        ("storage/set", {"key": "k", "value": 1}, [("STOR-001", True)]),
        ("storage/kv_set", {"key": "k", "value": 1, "scope": "tool"}, [("STOR-006", True)]),
        ("storage/set", {"key": 7, "value": 1, "scope": "tool"}, [(SCHEMA, False)]),
        ("storage/set", {"key": "/k", "value": 1, "scope": "tool"}, [(VALUE, False)]),
        ("agent/complete", {"prompt": "Hello", "max_tokens": 5}, []),
        ("progress", {"type": "progress"}, [("CORE-008", True)]),
        ("image/generate", {"anything": True}, []),
    ],
)
def test_params_are_read_and_held_against_their_schema(
    method: str, params: Object, found: list[tuple[str, bool]]
) -> None:
    assert seen(Lookout(), line(id="r1", method=method, params=params)) == found


def test_the_last_line_needs_its_end() -> None:
    lookout = Lookout()
    lookout.ended_within(b'{"jsonrpc"')

    assert [(each.requirement, each.line) for each in lookout.sightings] == [
        ("WIRE-008", b'{"jsonrpc"')
    ]


def test_what_was_provoked_on_purpose_may_be_answered() -> None:
    lookout = Lookout()
    lookout.deliberate(7, "describe")

    assert seen(lookout, line(id=7, error={"code": -32700, "message": "no"})) == []
    assert lookout.unanswered == []
