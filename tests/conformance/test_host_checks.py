"""Every check of a host passes on ours."""

import sys

import pytest

from executa_conformance.model import Check, Result
from executa_conformance.patience import Patience
from executa_conformance.registry import checks
from tests.conformance.host_runs import asked_for, run_all

OURS = (sys.executable, "-m", "executa_host.adapter")

TOLERANT = {"AGNT-006:run-answers-with-frames"}
"""What only a strict host does (R-31)."""

PATIENCE = Patience(quiet=0.1, grace=1.0)

each_check = pytest.mark.parametrize("check", checks("host"), ids=lambda check: check.name)


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> dict[str, Result]:
    """What came of the checks."""
    return run_all(asked_for(request), OURS, PATIENCE)


@each_check
def test_our_host_passes(check: Check, results: dict[str, Result]) -> None:
    result = results[check.name]

    assert result.word == ("non-strict" if check.name in TOLERANT else "pass"), result.message
    assert result.evidence
