"""Who may call what, which step says no, by which code, and what would help (R-22, R-29)."""

from typing import Any

import pytest

from executa_protocol import codec
from executa_protocol.codes import by_symbol
from executa_protocol.gate import (
    STEPS,
    Refusal,
    Verdict,
    check_grant,
    check_manifest,
    check_negotiated,
    check_scope,
    check_token,
    explain,
)
from executa_protocol.handshake import FALLBACK, Negotiated
from executa_protocol.methods import METHODS, MethodInfo
from executa_protocol.nexus import Grants, Token

V2 = Negotiated("2.0")
V2_SAMPLING = Negotiated("2.1", frozenset({"sampling"}))
SAMPLE = METHODS["sampling/createMessage"]
COMPLETE = METHODS["agent/complete"]
RUN = METHODS["agent/session.run"]
GET = METHODS["storage/get"]
UPLOAD = METHODS["files/upload_begin"]

CODES = [(SAMPLE, -32008), (COMPLETE, -32041), (RUN, -32041), (GET, -32021), (UPLOAD, -32021)]
by_chapter = pytest.mark.parametrize(
    ("method", "code"), CODES, ids=[method.name for method, _ in CODES]
)


def refused(refusal: Refusal | None) -> Refusal:
    """A refusal, which there must be; its answer is one that can be sent."""
    assert refusal is not None
    codec.check_content(codec.encode(refusal.error))
    return refusal


def data_of(refusal: Refusal) -> dict[str, Any]:
    """What the answer says beside its message."""
    data: Any = refusal.error.data
    return data


# --- Negotiated -------------------------------------------------------------------------------


@by_chapter
def test_version_1_has_no_reverse_calls_and_each_chapter_says_so_by_its_code(
    method: MethodInfo, code: int
) -> None:
    refusal = refused(check_negotiated(method, FALLBACK))
    assert (refusal.step, refusal.error.code) == ("negotiated", code)
    assert refusal.needs == ("protocolVersion: 2.0",)
    assert "1.1" in refusal.message


@by_chapter
def test_v2_without_keys_is_enough_in_tolerant_mode(method: MethodInfo, code: int) -> None:
    assert code
    assert check_negotiated(method, V2) is None


def test_in_strict_mode_sampling_also_needs_its_key() -> None:
    refusal = refused(check_negotiated(SAMPLE, V2, strict=True))
    assert (refusal.error.code, refusal.needs) == (-32008, ("capabilities.sampling",))
    assert check_negotiated(SAMPLE, V2_SAMPLING, strict=True) is None


@pytest.mark.parametrize("method", [COMPLETE, RUN, GET, UPLOAD], ids=lambda method: method.name)
def test_in_strict_mode_the_other_chapters_need_no_key(method: MethodInfo) -> None:
    # The seed's offer has no key for them, so that a plugin cannot name one.
    assert check_negotiated(method, V2, strict=True) is None


# --- Manifest ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "declared", "missing"),
    [
        (SAMPLE, (), ("llm.sample",)),
        (SAMPLE, ("llm.agent.auto", "llm.complete"), ("llm.sample",)),
        (SAMPLE, ("llm.sample",), ()),
        (COMPLETE, ("llm.agent.auto",), ("llm.sample",)),
        (COMPLETE, ("llm.sample",), ()),
        (RUN, (), ("llm.sample", "llm.agent.auto")),
        (RUN, ("llm.sample",), ("llm.agent.auto",)),
        (RUN, ("llm.agent.auto",), ("llm.sample",)),
        (RUN, ("llm.sample", "llm.agent.auto"), ()),
        (GET, ("aps.files",), ("aps.kv",)),
        (GET, ("aps.kv",), ()),
        (GET, ("aps.scope.user.read",), ()),
        (GET, ("storage.user",), ("aps.kv",)),
        (UPLOAD, ("aps.kv",), ("aps.files",)),
        (UPLOAD, ("aps.files",), ()),
    ],
)
def test_the_manifest_must_declare_what_unlocks_a_method(
    method: MethodInfo, declared: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    refusal = check_manifest(method, declared)
    assert (refusal.needs if refusal else ()) == missing
    if refusal is not None:
        assert refused(refusal).step == "manifest"
        assert all(word in refusal.message for word in missing)


def test_bare_aps_unlocks_both_stores_in_tolerant_mode_only() -> None:
    for method in (GET, UPLOAD):
        assert check_manifest(method, ("aps",)) is None
        assert check_manifest(method, ("aps",), strict=True) is not None


@by_chapter
def test_a_method_that_is_not_declared_is_refused_by_its_chapters_code(
    method: MethodInfo, code: int
) -> None:
    assert refused(check_manifest(method, ())).error.code == code


# --- Grant, token, scope ----------------------------------------------------------------------

TOKEN = Token("secret", expires_at=100.0, scopes=("user", "tool"))


@pytest.mark.parametrize(
    ("method", "grant", "code", "symbol"),
    [
        (SAMPLE, "sampling", -32001, "NOT_GRANTED"),
        (COMPLETE, "sampling", -32041, "AGENT_NOT_GRANTED"),
        (RUN, "agent", -32041, "AGENT_NOT_GRANTED"),
        (GET, "storage", -32021, "not_granted"),
        (UPLOAD, "files", -32021, "not_granted"),
    ],
)
def test_the_user_must_have_allowed_it(
    method: MethodInfo, grant: str, code: int, symbol: str
) -> None:
    refusal = refused(check_grant(method, Grants()))
    assert (refusal.step, refusal.needs) == ("grant", (f"grant: {grant}",))
    assert (refusal.error.code, data_of(refusal)["errorCode"]) == (code, symbol)
    assert check_grant(method, Grants(**{grant: True})) is None


@by_chapter
def test_a_call_needs_a_token_that_has_not_expired(method: MethodInfo, code: int) -> None:
    assert code
    missing = refused(check_token(method, None, 0.0))
    assert (missing.step, missing.needs) == ("token", (f"{method.token}_token",))
    assert check_token(method, TOKEN, 99.9) is None
    expired = refused(check_token(method, TOKEN, 100.0))
    assert "has expired" in expired.message
    assert "secret" not in str(expired) + str(missing)


def test_a_missing_or_expired_token_is_told_by_the_chapters_codes() -> None:
    def codes(token: Token | None) -> list[int]:
        return [refused(check_token(method, token, 100.0)).error.code for method, _ in CODES]

    assert codes(None) == [-32001, -32041, -32041, -32021, -32021]
    assert codes(TOKEN) == [-32018, -32018, -32018, -32021, -32021]


def test_what_needs_no_grant_and_no_token_passes() -> None:
    progress = METHODS["executa/progress"]
    assert check_grant(progress, Grants()) is None
    assert check_token(progress, None, 0.0) is None


@pytest.mark.parametrize("scope", ["user", "tool"])
def test_a_scope_of_the_token_passes(scope: str) -> None:
    assert check_scope(GET, scope, TOKEN) is None


@pytest.mark.parametrize("scope", ["app", "", "USER", "x" * 1000])
def test_a_scope_outside_the_token_is_forbidden(scope: str) -> None:
    refusal = refused(check_scope(UPLOAD, scope, TOKEN))
    assert (refusal.step, refusal.error.code) == ("scope", -32021)
    assert data_of(refusal)["errorCode"] == "forbidden_scope"
    assert refusal.needs == (f"scope: {scope[:40]}",)
    assert len(refusal.message) < 200
    assert "(user, tool)" in refusal.message


def test_a_token_without_scopes_opens_none() -> None:
    assert "(none)" in refused(check_scope(GET, "user", Token("t", 1.0))).message


def test_only_storage_has_scopes_and_only_where_a_call_names_one() -> None:
    assert check_scope(SAMPLE, "app", TOKEN) is None
    assert check_scope(GET, None, TOKEN) is None
    assert check_scope(GET, "app", None) is None  # the token's step has refused it already


# --- The answer -------------------------------------------------------------------------------


def test_the_answer_keeps_the_seeds_code_and_says_what_is_missing() -> None:
    error = refused(check_manifest(RUN, ("llm.sample",))).error
    assert error.code == -32041
    assert error.message.startswith("AGENT_NOT_GRANTED: the manifest's host_capabilities lack")
    assert error.data == {
        "errorCode": "AGENT_NOT_GRANTED",
        "missing": {"step": "manifest", "needs": ["llm.agent.auto"]},
    }


def test_every_row_that_a_step_answers_with_is_in_the_table_and_among_the_methods_errors() -> None:
    for method in METHODS.values():
        if method.direction != "plugin_to_host" or method.kind != "request" or not method.served:
            continue
        steps = [
            check_negotiated(method, FALLBACK),
            check_manifest(method, ()),
            check_grant(method, Grants()),
            check_token(method, None, 0.0),
            check_token(method, TOKEN, TOKEN.expires_at),
        ]
        for refusal in steps:
            name = by_symbol(refused(refusal).row).name
            assert name in {by_symbol(error).name for error in method.errors}, method.name


# --- Walking the chain without a call ---------------------------------------------------------


def passed(verdicts: list[Verdict]) -> dict[str, bool | None]:
    return {verdict.step: verdict.passed for verdict in verdicts}


def test_explain_walks_every_step_in_order() -> None:
    verdicts = explain(RUN, V2, ("llm.sample", "llm.agent.auto"), grants=Grants(agent=True))
    assert [verdict.step for verdict in verdicts] == list(STEPS)
    assert passed(verdicts) == dict.fromkeys(STEPS) | {
        "negotiated": True,
        "manifest": True,
        "grant": True,
    }
    assert all(verdict.detail for verdict in verdicts if verdict.passed is None)


def test_explain_says_of_each_step_why_not() -> None:
    verdicts = explain(SAMPLE, FALLBACK, (), grants=Grants(), strict=True)
    refusals = {v.step: v.refusal for v in verdicts if v.passed is False}
    assert set(refusals) == {"negotiated", "manifest", "grant"}
    for verdict in verdicts:
        if verdict.refusal is not None:
            assert verdict.detail == verdict.refusal.message


def test_explain_leaves_the_grant_open_when_nobody_has_told_it() -> None:
    assert passed(explain(GET, V2, ("aps.kv",)))["grant"] is None


def test_explain_is_strict_when_asked() -> None:
    assert passed(explain(GET, V2, ("aps",)))["manifest"] is True
    assert passed(explain(GET, V2, ("aps",), strict=True))["manifest"] is False
