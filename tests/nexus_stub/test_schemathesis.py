"""Whatever Schemathesis makes of the stub's OpenAPI document, right or wrong: no answer is a 5xx.

It asks a stub that runs as a process of its own, half of the time under tokens that are good.
"""

import itertools
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from executa_host.cli.running import run
from executa_host.nexus.http import HttpNexus
from executa_protocol.nexus import InvokeGrant, InvokeOpening

schemathesis: Any = import_module("schemathesis")  # its types are not strict
hypothesis: Any = import_module("hypothesis")

EXAMPLES = 20
"""Requests of each kind for each operation; enough to reach each refusal."""

LEAST_OPERATIONS = 15


@pytest.fixture
def url() -> Iterator[str]:
    """A stub in a process of its own."""
    command = [sys.executable, "-m", "executa_nexus_stub", "--port", "0"]
    stub = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert stub.stdout is not None
    try:
        yield stub.stdout.readline().strip().rpartition(" ")[2]
    finally:
        stub.terminate()
        stub.communicate(timeout=20)


async def _opened(url: str) -> InvokeGrant:
    nexus = HttpNexus(url)
    opening = InvokeOpening(
        user_id="local",
        executa_tool_id="raw",
        plugin="raw",
        tool="echo",
        invoke_id="0123456789abcdef" * 2,
        capabilities=("llm.sample", "llm.agent.auto", "aps.kv", "aps.files"),
    )
    try:
        return await nexus.open_invoke(opening)
    finally:
        await nexus.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_makes_the_stub_fail(url: str, mode: str) -> None:
    grant = run(_opened(url))
    tokens = [token.value for token in (grant.sampling_token, grant.storage_token) if token]
    document = subprocess.run(
        [sys.executable, "-m", "executa_nexus_stub", "--openapi"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout
    schema = schemathesis.openapi.from_file(document)
    wanted = schemathesis.GenerationMode(mode)
    seen: defaultdict[str, set[int]] = defaultdict(set)
    turn = itertools.count()
    for found in schema.get_all_operations():

        @hypothesis.settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=found.ok().as_strategy(generation_mode=wanted))
        def ask(case: Any) -> None:
            number = next(turn)
            bearer = tokens[number % len(tokens)] if number % 4 else "no.such.token"
            headers = {"Authorization": f"Bearer {bearer}"}
            response = case.call(base_url=url, headers=headers, timeout=20)
            seen[case.operation.label].add(response.status_code)
            assert response.status_code < 500, response.text

        try:
            ask()
        except hypothesis.errors.Unsatisfiable:
            assert mode == "negative"  # an operation that takes nothing takes nothing wrong
    reached = {status for statuses in seen.values() for status in statuses}
    assert len(seen) >= LEAST_OPERATIONS
    assert reached & {400, 401, 403, 410, 422}
    # What is wrong in a place that an operation does not look at may be served, or not.
    assert mode == "negative" or 200 in reached
