"""Capability strings: one predicate for validation, minting and gate (R-29)."""

import pytest

from executa_protocol import capabilities as caps
from executa_protocol.methods import METHODS, unlocks


@pytest.mark.parametrize(
    ("declared", "kinds"),
    [
        ([], set[str]()),
        (["llm.sample"], {"sampling"}),
        (["llm.agent.auto"], set[str]()),
        (["aps.kv"], {"storage"}),
        (["aps.files"], {"storage"}),
        (["aps.scope.app.read"], {"storage"}),
        (["aps"], {"storage"}),
        (["llm.sample", "aps.files"], {"sampling", "storage"}),
    ],
)
def test_an_invoke_carries_the_tokens_that_the_manifest_unlocks(
    declared: list[str], kinds: set[str]
) -> None:
    """A scope-only manifest gets its token (seed lifecycle, Manifest declarations)."""
    assert caps.tokens(declared) == kinds


def test_bare_aps_mints_nothing_in_strict_mode() -> None:
    assert caps.tokens(["aps"], strict=True) == set()
    assert caps.departure("aps") is not None


@pytest.mark.parametrize("word", sorted(caps.ALLOWED))
def test_whatever_unlocks_a_method_mints_its_token_and_the_other_way_round(word: str) -> None:
    declared = ["llm.sample", word] if word.startswith("llm.agent") else [word]
    kinds = caps.tokens(declared)
    unlocked = {
        info.token
        for info in METHODS.values()
        if info.token is not None and not unlocks(declared, info.name)
    }
    assert unlocked == kinds


def test_every_string_that_a_method_needs_is_on_the_allow_list() -> None:
    for info in METHODS.values():
        for group in info.need:
            assert group[0] in caps.ALLOWED


def test_the_seed_s_invalid_strings_are_no_capabilities() -> None:
    for word in ("storage.user", "storage.app", "storage.tool"):
        assert caps.is_invalid(word)
        assert not caps.is_allowed(word)
        assert caps.hint(word)
    assert not caps.is_invalid("aps")
    assert caps.hint("no.such.string") == ""


def test_an_allowed_string_is_no_departure() -> None:
    assert caps.departure("llm.sample") is None
    departure = caps.departure("llm.agent")
    assert departure is not None
    assert 'write "llm.sample" and "llm.agent.auto"' in departure[1]
