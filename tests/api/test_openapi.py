"""The OpenAPI document: current, complete, and true about refusals."""

from importlib.metadata import version
from pathlib import Path

import aiohttp
import msgspec

from executa_host.api.endpoint import full_path
from executa_host.api.openapi import document, write
from executa_host.api.routes import ENDPOINTS
from tests.api.rigs import Rig

CHECKED_IN = Path(__file__).parents[2] / "docs" / "openapi" / "actions.json"


def test_the_checked_in_document_is_current(tmp_path: Path) -> None:
    write(tmp_path / "now.json")
    assert CHECKED_IN.read_bytes() == (tmp_path / "now.json").read_bytes(), (
        "stale; run: uv run python -m executa_host.api docs/openapi/actions.json"
    )


async def test_the_served_document_is_the_checked_in_one(rig: Rig) -> None:
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{rig.url}/v1/openapi.json") as response,
    ):
        assert await response.json() == msgspec.json.decode(CHECKED_IN.read_bytes())


def test_every_endpoint_is_told_with_its_scope_and_every_reference_leads_somewhere() -> None:
    told = document(version("executa-host"))
    for endpoint in ENDPOINTS:
        operation = told["paths"][full_path(endpoint)][endpoint.method.lower()]
        assert operation["summary"]
        assert ("security" in operation) == (endpoint.scope is not None)
        if endpoint.scope is not None:
            assert endpoint.scope in operation["description"]
            assert {"401", "403"} <= set(operation["responses"])
    names = [op["operationId"] for path in told["paths"].values() for op in path.values()]
    assert len(names) == len(set(names))
    text = msgspec.json.encode(told).decode()
    referred = {part.partition('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert referred <= set(told["components"]["schemas"])


def test_bodies_admit_no_other_members_and_queries_have_their_bounds() -> None:
    told = document("0")
    schemas = told["components"]["schemas"]
    for name in ("SubmitBody", "StrictContext", "StrictCallback", "ResumeBody", "DecisionBody"):
        assert schemas[name]["additionalProperties"] is False
    listing = told["paths"]["/v1/actions"]["get"]["parameters"]
    limit = next(each for each in listing if each["name"] == "limit")["schema"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 1000, 100)
    result = told["paths"]["/v1/actions/{action_id}/result"]["get"]["parameters"]
    wait = next(each for each in result if each["name"] == "wait")["schema"]
    assert (wait["minimum"], wait["maximum"]) == (0, 30)
