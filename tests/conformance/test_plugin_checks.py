"""Every check of a plugin passes on one that keeps its rule, and fails on one that breaks it."""

from pathlib import Path

import pytest

from executa_conformance.model import Check
from executa_conformance.plugin.facts import Facts
from executa_conformance.registry import checks
from tests.conformance.conftest import SHORT, STRANGER, judge
from tests.conformance.peers.__main__ import FAULTS

CHECKS = checks("plugin")
V1 = {"HAND-119:a-v1-plugin-refuses-and-serves"}
"""Checks that only a plugin of protocol 1.1 can pass."""

each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)


@each_check
async def test_a_plugin_that_keeps_the_rule_passes(
    check: Check, facts: Facts, tmp_path: Path
) -> None:
    words = ("--v1",) if check.name in V1 else ()
    result = await judge(check, (*STRANGER, *words), tmp_path, facts)

    assert result.word == "pass", result.message


@each_check
async def test_a_plugin_that_breaks_the_rule_is_caught(
    check: Check, facts: Facts, tmp_path: Path
) -> None:
    assert check.name in FAULTS, "a check without a fault that it catches does not exist"
    result = await judge(check, (*STRANGER, "--fault", check.name), tmp_path, facts, SHORT)

    assert result.word in ("fail", "non-strict"), result.evidence
    assert "cannot run" not in result.message
    assert result.message
    assert result.evidence


def test_every_fault_belongs_to_a_check() -> None:
    assert {check.name for check in CHECKS} == FAULTS.keys()
