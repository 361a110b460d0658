"""Every check of durable work passes on `executa serve`, and catches a runtime that is wrong."""

import sys
from collections.abc import Generator

import msgspec
import pytest

from executa_conformance.actions.target import Access, open_actions
from executa_conformance.model import Check, Result
from executa_conformance.patience import Patience
from executa_conformance.registry import checks
from executa_conformance.runner import run_check
from executa_host.actions.requests import OWN_WORK, Scope
from tests.api.served import Served
from tests.conformance.bent_http.actions_bends import BENDS
from tests.conformance.bent_http.relay import Relay

CHECKS = checks("actions")
PATIENCE = Patience(answer=10.0, invoke=20.0)
IMPATIENT = Patience(answer=1.5, invoke=3.0)
"""What does not come must not be waited for long."""

CONFIG = """
[nexus]
kind = "stub"
options = {{ open_to_all = true }}

[limits]
cancel = 0.3
health = 0.5
stop = 0.5

[plugins.conformance]
command = [{python}, "-m", "executa_conformance.actions.plugin"]
"""

each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Generator[Access]:
    """A runtime that serves the kit's plugin, and the keys of two principals."""
    served = Served(tmp_path_factory.mktemp("served"))
    python = msgspec.json.encode(sys.executable).decode()
    served.config.write_text(CONFIG.format(python=python))
    with served:
        mine = served.key("kit", frozenset(OWN_WORK | {Scope.APPROVE, Scope.REDRIVE}))
        yield Access(f"{served.url}/v1", "conformance", mine, served.key("bob"))


async def judge(check: Check, access: Access, patience: Patience = PATIENCE) -> Result:
    async with open_actions(access, patience) as target:
        return await run_check(check, target, patience)


@each_check
async def test_our_runtime_passes(check: Check, access: Access) -> None:
    result = await judge(check, access)

    assert result.word == "pass", result.message
    assert result.evidence


@each_check
async def test_a_runtime_that_breaks_the_rule_is_caught(check: Check, access: Access) -> None:
    assert check.requirement in BENDS, "a check without a fault that it catches does not exist"
    async with Relay(access.url.removesuffix("/v1")) as relay:
        relay.bend = BENDS[check.requirement]()
        bent = msgspec.structs.replace(access, url=f"{relay.url}/v1")
        result = await judge(check, bent, IMPATIENT)

    assert result.word == "fail", result.evidence
    assert "cannot run" not in result.message
    assert result.message


def test_every_fault_belongs_to_a_check() -> None:
    assert {check.requirement for check in CHECKS} == BENDS.keys()


async def test_keys_and_resume_tokens_are_not_in_the_evidence(access: Access) -> None:
    check = next(check for check in CHECKS if check.requirement == "SESS-006")

    result = await judge(check, access)

    text = str(result.evidence)
    assert access.key not in text
    assert "[withheld]" in text
