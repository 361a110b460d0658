"""The structs between host and nexus: their defaults, and that none shows a secret (R-35, R-39)."""

from typing import Any

import msgspec
import pytest

from executa_protocol.codec import decode_any, encode
from executa_protocol.errors import ExecutaError
from executa_protocol.nexus import (
    AgentRun,
    Caps,
    Grants,
    InvokeGrant,
    MintedAgentSession,
    NexusError,
    Token,
)

SECRET = "s3cr3t"  # noqa: S105 - it must not show
HOLDERS: list[Any] = [
    Token(SECRET, 1.0, ("user",)),
    InvokeGrant(
        sampling_token=Token(SECRET, 1.0),
        storage_token=Token(SECRET, 1.0),
        credentials={"KEY": SECRET},
        granted_tools=("a.b",),
    ),
    MintedAgentSession("uuid", SECRET, "thread", 1.0, label=SECRET),
]


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: type(holder).__name__)
def test_no_secret_shows_when_a_struct_is_printed(holder: Any) -> None:
    shown = repr(holder) + str(holder) + f"{holder!r}" + repr(list(holder.__rich_repr__()))
    assert SECRET not in shown
    assert type(holder).__name__ in repr(holder)


def test_a_repr_shows_what_helps() -> None:
    assert repr(HOLDERS[0]) == "Token(expires_at=1.0, scopes=('user',))"
    assert "granted_tools=('a.b',)" in repr(HOLDERS[1])
    assert "app_session_uuid='uuid'" in repr(HOLDERS[2])


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: type(holder).__name__)
def test_what_is_hidden_is_still_sent_and_read(holder: Any) -> None:
    kind = holder.__class__
    assert msgspec.json.decode(encode(holder), type=kind) == holder


def test_a_grant_allows_nothing_and_caps_are_those_of_r_35_unless_told() -> None:
    assert InvokeGrant().grants == Grants(sampling=False, agent=False, storage=False, files=False)
    caps = Caps()
    assert (caps.sampling_calls, caps.tokens_per_call) == (8, 8192)
    assert (caps.tokens, caps.storage_calls) == (32_000, 200)


def test_defaults_are_not_shared() -> None:
    first, second = InvokeGrant(), InvokeGrant()
    first.credentials["KEY"] = "value"
    assert second.credentials == {}


def test_absent_members_of_a_run_are_left_out() -> None:
    assert decode_any(encode(AgentRun("r1", "hello"))) == {"run_id": "r1", "content": "hello"}
    told = decode_any(encode(AgentRun("r1", "hello", allowed_tools=())))
    assert told["allowed_tools"] == []  # none at all is not the same as not told


def test_an_error_tells_what_nexus_told() -> None:
    error = NexusError("busy", status=429, code=-32002, symbol="QUOTA", retry_after=1.5)
    assert isinstance(error, ExecutaError)
    assert (error.status, error.code, error.symbol, error.retry_after) == (
        429,
        -32002,
        "QUOTA",
        1.5,
    )
    bare = NexusError("not reached")
    assert (bare.status, bare.code, bare.symbol, bare.retry_after) == (0, None, "", None)
