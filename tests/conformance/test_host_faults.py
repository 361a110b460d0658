"""Every check of a host catches one that is wrong in what the check is about."""

import sys
from pathlib import Path

import pytest

from executa_conformance.model import Check, Result
from executa_conformance.patience import Patience
from executa_conformance.registry import checks
from tests.conformance.bent_host.faults import FAULT_OF
from tests.conformance.bent_host.relay_faults import UPSTREAM
from tests.conformance.bent_host.talk_faults import TALK
from tests.conformance.bent_host.wire_faults import FAULTS
from tests.conformance.host_runs import asked_for, run_all

BENT = Path(__file__).parent / "bent_host" / "adapter.py"

PATIENCE = Patience(start=20.0, answer=1.5, quiet=0.1, grace=1.0, check=30.0)
"""What does not come must not be waited for long; the host itself may take its time to start."""

CHECKS = checks("host")

each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Result]:
    """What came of the checks."""
    command = (sys.executable, str(BENT), str(tmp_path_factory.mktemp("bent")))
    return run_all(asked_for(request), command, PATIENCE)


@each_check
def test_a_host_that_breaks_the_rule_is_caught(check: Check, results: dict[str, Result]) -> None:
    assert check.requirement in FAULT_OF, "a check without a fault that it catches does not exist"
    result = results[check.name]

    assert result.word in ("fail", "non-strict"), result.evidence
    assert "cannot run" not in result.message
    assert "did not end within" not in result.message
    assert result.message
    assert result.evidence


def test_every_fault_belongs_to_a_check_and_every_one_is_used() -> None:
    assert {check.requirement for check in CHECKS} == FAULT_OF.keys()
    made = {*FAULTS, *UPSTREAM, *TALK, "asks-without-need"}
    assert set(FAULT_OF.values()) == made
