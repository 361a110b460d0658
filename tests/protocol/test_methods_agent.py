"""`agent/*`: what `create`, `run` and the rest may say, and both forms of their answers."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from executa_protocol.errors import StrictRefusal
from executa_protocol.methods import METHODS, InvalidParams
from executa_protocol.methods.agent import (
    CompleteParams,
    check_complete,
    read_cancel_run,
    read_complete,
    read_create,
    read_delete,
    read_history,
    read_list,
    read_refresh,
    read_run,
)
from executa_protocol.methods.agent_results import (
    read_create_result,
    read_history_result,
    read_run_result,
)
from executa_protocol.readings import STRICT, TOLERANT
from tests.protocol.reading import Listening, encoded, refusal_code, without

AGENT = {"kind": "agent", "agent_submode": "auto"}
RUN: dict[str, Any] = {"app_session_uuid": "u", "content": "Plan my week."}
MESSAGE = {"role": "user", "content": {"type": "text", "text": "hi"}}
AGENT_METHODS = [name for name in METHODS if name.startswith("agent/")]


# --- create (R-38) -----------------------------------------------------------------


def test_the_seed_s_two_kinds_are_read_in_strict_mode() -> None:
    """Seed agent-sessions, agent/session.create params."""
    assert read_create(encoded(AGENT | {"label": "l"}), STRICT).label == "l"
    fixed = read_create(encoded(kind="fixed", fixed_client_id="notebook.recall"), STRICT)
    assert fixed.fixed_client_id == "notebook.recall"


def test_an_absent_kind_is_read_as_agent_and_refused_in_strict_mode() -> None:
    reader = Listening()
    assert read_create(encoded(agent_submode="auto"), reader).kind == "agent"
    assert reader.ids == ["AGNT-002"]
    with pytest.raises(StrictRefusal, match="AGNT-002"):
        read_create(encoded(agent_submode="auto"), STRICT)


def test_submode_is_read_as_agent_submode() -> None:
    reader = Listening()
    assert read_create(encoded(kind="agent", submode="auto"), reader).agent_submode == "auto"
    assert reader.ids == ["AGNT-001"]
    with pytest.raises(StrictRefusal, match="AGNT-001"):
        read_create(encoded(kind="agent", submode="auto"), STRICT)


def test_an_alias_beside_its_own_name_counts_for_nothing() -> None:
    assert read_create(encoded(AGENT | {"submode": "other"}), STRICT).agent_submode == "auto"


def test_an_alias_is_found_behind_escapes() -> None:
    text = b'{"kind":"agent","sub\\u006dode":"auto"}'
    assert read_create(text).agent_submode == "auto"


@pytest.mark.parametrize(
    ("members", "code", "path"),
    [
        ({"kind": "other"}, -32602, "kind"),
        ({"kind": 5}, -32602, "kind"),
        ({}, -32042, "agent_submode"),
        ({"kind": "agent"}, -32042, "agent_submode"),
        ({"kind": "agent", "agent_submode": "fixed"}, -32042, "agent_submode"),
        ({"kind": "agent", "agent_submode": ""}, -32042, "agent_submode"),
        ({"kind": "fixed"}, -32043, "fixed_client_id"),
        ({"kind": "fixed", "fixed_client_id": ""}, -32043, "fixed_client_id"),
        ({"kind": "fixed", "agent_submode": "auto"}, -32043, "fixed_client_id"),
        (AGENT | {"label": "x" * 121}, -32602, "label"),
        (AGENT | {"system_prompt": "x" * 4001}, -32602, "system_prompt"),
        (AGENT | {"ttl_seconds": 0}, -32602, "ttl_seconds"),
        (AGENT | {"ttl_seconds": 7201}, -32602, "ttl_seconds"),
    ],
)
def test_create_is_refused_by_the_code_of_its_fault(
    members: dict[str, Any], code: int, path: str
) -> None:
    with pytest.raises(InvalidParams) as caught:
        read_create(msgspec.json.encode(members))
    assert (caught.value.error.code, caught.value.path) == (code, path)


def test_create_takes_everything_at_its_limit() -> None:
    members = AGENT | {"label": "x" * 120, "system_prompt": "x" * 4000, "ttl_seconds": 7200}
    members |= {"quota_caps": {"inherit_host_tools": False, "allowed_tools": ["a.b"]}}
    params = read_create(encoded(members), STRICT)
    assert msgspec.json.decode(msgspec.json.encode(params)) == members


def test_expires_in_is_read_as_ttl_seconds() -> None:
    reader = Listening()
    assert read_create(encoded(AGENT | {"expires_in": 60}), reader).ttl_seconds == 60
    assert read_refresh(encoded(app_session_uuid="u", expires_in=60), reader).ttl_seconds == 60
    assert reader.ids == ["AGNT-003", "AGNT-003"]


# --- run ------------------------------------------------------------------------------


def test_a_full_run_survives_the_round_trip() -> None:
    members = RUN | {
        "run_id": "r",
        "attachments": [{"type": "image", "url": "https://x"}] * 6,
        "recursion_limit": 32,
        "allowed_tools": [],
        "modelPreferences": {"hints": [{"name": "m"}]},
        "systemPrompt": "s",
        "maxTokens": 65_536,
        "context": {"invoke_id": "i"},
    }
    params = read_run(encoded(members), STRICT)
    assert msgspec.json.decode(msgspec.json.encode(params)) == members


@pytest.mark.parametrize(
    ("members", "path"),
    [
        (without(RUN, "content"), ""),
        (RUN | {"content": ""}, "content"),
        (RUN | {"content": " \n"}, "content"),
        (RUN | {"content": {"type": "image"}}, "content"),
        (RUN | {"content": {"type": "text"}}, "content"),
        (RUN | {"content": 5}, "content"),
        (RUN | {"app_session_uuid": ""}, "app_session_uuid"),
        (RUN | {"run_id": ""}, "run_id"),
        (RUN | {"attachments": [{"type": "image", "url": "u"}] * 7}, "attachments"),
        (RUN | {"attachments": [{"type": "image"}]}, "attachments[0]"),
        (RUN | {"recursion_limit": 0}, "recursion_limit"),
        (RUN | {"recursion_limit": 33}, "recursion_limit"),
        (RUN | {"maxTokens": 0}, "maxTokens"),
        (RUN | {"maxTokens": 65_537}, "maxTokens"),
    ],
)
def test_a_bad_run_is_refused_by_path(members: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        read_run(encoded(members))
    assert (caught.value.error.code, caught.value.path) == (-32602, path)


@pytest.mark.parametrize("content", [{"type": "text", "text": "hey"}, [{"text": "hey"}], ["hey"]])
def test_content_as_a_text_part_is_tolerated(content: Any) -> None:
    reader = Listening()
    assert read_run(encoded(RUN | {"content": content}), reader).content == "hey"
    assert reader.ids == ["AGNT-004"]


def test_system_is_read_as_system_prompt() -> None:
    reader = Listening()
    assert read_run(encoded(RUN | {"system": "s"}), reader).system_prompt == "s"
    assert reader.ids == ["AGNT-005"]


# --- complete (R-37) ----------------------------------------------------------------------


def test_the_seed_s_prompt_and_the_field_s_messages_mean_the_same() -> None:
    by_prompt = read_complete(encoded(prompt="hi", max_tokens=200), STRICT)
    by_messages = read_complete(encoded(messages=[MESSAGE], maxTokens=200), STRICT)
    assert by_prompt == by_messages


def test_messages_win_over_a_prompt() -> None:
    params = read_complete(encoded(messages=[MESSAGE], prompt="other", maxTokens=1))
    assert params.messages[0].content.text == "hi"


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"prompt": 5, "max_tokens": 1}, "prompt"),
        ({"prompt": "p"}, ""),
        ({"messages": [], "maxTokens": 1}, "messages"),
        ({"messages": [MESSAGE] * 65, "maxTokens": 1}, "messages"),
        ({"messages": [MESSAGE, {"role": "x"}], "maxTokens": 1}, "messages[1].role"),
        ({"prompt": "p", "maxTokens": 0}, "maxTokens"),
    ],
)
def test_a_bad_complete_is_refused_by_path(members: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        read_complete(encoded(members))
    assert (caught.value.error.code, caught.value.path) == (-32602, path)


def test_a_complete_built_by_hand_is_checked_too() -> None:
    with pytest.raises(InvalidParams, match="messages"):
        check_complete(CompleteParams(messages=[], max_tokens=1))


# --- The rest -------------------------------------------------------------------------------


def test_the_small_calls_are_read() -> None:
    assert read_cancel_run(encoded(app_session_uuid="u", run_id="r"), STRICT).run_id == "r"
    assert read_delete(encoded(app_session_uuid="u"), STRICT).app_session_uuid == "u"
    assert read_list(UNSET, STRICT).include_expired is False
    assert read_list(encoded(include_expired=True, limit=100), STRICT).limit == 100
    assert read_history(encoded(app_session_uuid="u", limit=200), STRICT).limit == 200


@pytest.mark.parametrize(
    ("read", "members"),
    [
        (read_history, {"app_session_uuid": "u", "limit": 201}),
        (read_history, {"app_session_uuid": "u", "limit": 0}),
        (read_list, {"limit": 101}),
        (read_cancel_run, {"app_session_uuid": "u"}),
        (read_delete, {"app_session_uuid": ""}),
        (read_refresh, {"app_session_uuid": "u", "ttl_seconds": 7201}),
    ],
)
def test_the_small_calls_refuse_what_is_past_their_limits(
    read: Any, members: dict[str, Any]
) -> None:
    with pytest.raises(InvalidParams) as caught:
        read(encoded(members), TOLERANT)
    assert caught.value.error.code == -32602


@pytest.mark.parametrize("name", AGENT_METHODS)
@given(data=st.binary(max_size=60))
def test_any_bytes_raise_nothing_but_invalid_params(name: str, data: bytes) -> None:
    read = METHODS[name].read
    assert read is not None
    assert refusal_code(lambda: read(data, TOLERANT)) in {None, -32602, -32042, -32043}


# --- Answers ----------------------------------------------------------------------------------


def test_create_s_answer_is_read_with_and_without_the_field_s_extras() -> None:
    members = {"app_session_uuid": "u", "thread_id": "t", "agent_submode": "auto"}
    result = read_create_result(encoded(members | {"granted_tools": ["a.b"], "new": 1}), STRICT)
    assert result.granted_tools == ["a.b"]
    assert read_create_result(encoded(app_session_uuid="u", expires_in=None)).granted_tools == []
    with pytest.raises(InvalidParams):
        read_create_result(encoded(thread_id="t"))


FINAL = {"event": "final", "text": "t"}


def test_a_bare_array_of_frames_is_the_seed_s_answer_to_run() -> None:
    """Seed agent-sessions, Streaming choice."""
    result = read_run_result(encoded([{"event": "delta", "text": "t"}, FINAL]), STRICT)
    assert len(result.frames) == 2
    assert isinstance(result.final, Raw)
    assert msgspec.json.decode(result.final) == FINAL
    assert result.run_id is UNSET


@pytest.mark.parametrize("frames", [[], [5], [{"event": "delta"}], [{"text": "t"}], [{"event": 5}]])
def test_a_run_that_ends_without_a_final_frame_has_none(frames: list[Any]) -> None:
    assert read_run_result(encoded(frames), STRICT).final is UNSET


def test_the_field_s_answer_to_run_is_read_as_well() -> None:
    """R-31."""
    members = {"run_id": "r", "frames": [FINAL], "final": FINAL, "stream_id": "s"}
    reader = Listening()
    result = read_run_result(encoded(members), reader)
    assert (result.run_id, len(result.frames), result.stream_id) == ("r", 1, "s")
    assert reader.ids == ["AGNT-006"]
    with pytest.raises(StrictRefusal, match="AGNT-006"):
        read_run_result(encoded(members), STRICT)


@pytest.mark.parametrize("answer", [5, {"run_id": "r"}, {"frames": 5}])
def test_an_answer_to_run_without_frames_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidParams):
        read_run_result(encoded(answer))


def test_history_is_an_array_or_the_field_s_object() -> None:
    """R-33."""
    reader = Listening()
    assert read_history_result(b"[]", STRICT) == []
    assert read_history_result(b'{"messages":[],"next_cursor":null}', reader) == []
    assert reader.ids == ["AGNT-007"]
    for other in (b"{}", b"5", b'{"messages":5}'):
        with pytest.raises(InvalidParams):
            read_history_result(other)
