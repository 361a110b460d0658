"""Every check of a nexus passes on the stub, and catches one that is wrong in what it is about."""

from collections.abc import AsyncGenerator

import pytest

from executa_conformance.model import Check, Result
from executa_conformance.nexus.target import open_nexus
from executa_conformance.patience import Patience
from executa_conformance.registry import checks
from executa_conformance.runner import run_check
from executa_nexus_stub import create
from executa_nexus_stub.http.server import NexusServer
from tests.conformance.bent_http.nexus_bends import BENDS
from tests.conformance.bent_http.relay import Relay

CHECKS = checks("nexus")
PATIENCE = Patience(answer=10.0)

each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)


@pytest.fixture
async def nexus() -> AsyncGenerator[NexusServer]:
    stub = create({})
    async with NexusServer(stub) as server:
        yield server
    await stub.aclose()


async def judge(check: Check, url: str) -> Result:
    async with open_nexus(url, "", PATIENCE) as target:
        return await run_check(check, target, PATIENCE)


@each_check
async def test_the_stub_passes(check: Check, nexus: NexusServer) -> None:
    result = await judge(check, nexus.url)

    assert result.word == "pass", result.message
    assert result.evidence


@each_check
async def test_a_nexus_that_breaks_the_rule_is_caught(check: Check, nexus: NexusServer) -> None:
    assert check.requirement in BENDS, "a check without a fault that it catches does not exist"
    async with Relay(nexus.url) as relay:
        relay.bend = BENDS[check.requirement]()
        result = await judge(check, relay.url)

    assert result.word in ("fail", "non-strict"), result.evidence
    assert "cannot run" not in result.message
    assert result.message


def test_every_fault_belongs_to_a_check() -> None:
    assert {check.requirement for check in CHECKS} == BENDS.keys()


async def test_evidence_tells_no_tokens(nexus: NexusServer) -> None:
    check = next(check for check in CHECKS if check.requirement == "NEXS-012")

    result = await judge(check, nexus.url)

    assert not [event for event in result.evidence if "eyJ" in event.line]
