"""Whatever Schemathesis makes of the OpenAPI document, right or wrong: no answer is a 5xx.

It asks a host with a real engine and real plugins, under a key that may do everything, so that
what it makes gets as far as it can. Every answer also fits the document.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from typing import Any, cast

import pytest

from executa_host.actions.requests import ALL_SCOPES, submission
from executa_host.cli.running import run
from executa_host.client import Client
from executa_protocol.limits import WAIT_MAX
from tests.api.served import Served

schemathesis: Any = import_module("schemathesis")  # its types are not strict
hypothesis: Any = import_module("hypothesis")

EXAMPLES = 25
"""Requests of each kind for each operation; enough to reach each refusal."""

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("api")) as served:
        yield served


async def _known(served: Served, key: str) -> dict[str, str]:
    """Things that are there, by the names that requests have for them."""
    async with Client(served.url, key) as client:
        session = (await client.sessions.open("agent")).session.session_id
        wanted = submission("raw.echo", {"value": {}}, session_id=session, approval="ask")
        action = (await client.submit_exactly(wanted)).action
    return {
        "action_id": action.action_id,
        "session_id": session,
        "capability": "raw.echo",
        "name": "raw.echo",
        "plugin": "raw",
        "approval": "",
    }


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_makes_the_api_fail(served: Served, mode: str) -> None:
    schema = schemathesis.openapi.from_url(f"{served.url}/v1/openapi.json")
    key = served.key(scopes=ALL_SCOPES)
    known = run(_known(served, key))
    wanted = schemathesis.GenerationMode(mode)
    checks = [getattr(schemathesis.checks, name) for name in CHECKS]
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
            if next(turn) % 2:  # made-up names would be refused before much has happened
                _use_known(case, known)
            response = case.call(headers={"Authorization": f"Bearer {key}"}, timeout=40)
            seen[case.operation.label].add(response.status_code)
            case.validate_response(response, checks=checks)

        try:
            ask()
        except hypothesis.errors.Unsatisfiable:
            assert mode == "negative"  # an operation that takes nothing takes nothing wrong
    reached = {status for statuses in seen.values() for status in statuses}
    assert len(seen) > 20
    assert {200, 400, 404, 409} <= reached
    assert mode == "negative" or 202 in seen["POST /v1/actions"]


def _use_known(case: Any, known: dict[str, str]) -> None:
    """Name things that are there."""
    for place in (case.path_parameters, case.body):
        if isinstance(place, dict):
            members = cast("dict[str, Any]", place)
            members |= {name: value for name, value in known.items() if name in members}
    wait = cast("dict[str, Any]", case.query or {}).get("wait")
    if isinstance(wait, int | float) and 0 < wait <= WAIT_MAX:
        case.query["wait"] = wait / 1000  # what is known awaits an approval that never comes
