"""The kit's side of a host's adapter: what it makes of adapters that are wrong, or serve little."""

import asyncio
import sys
import textwrap
from pathlib import Path

import pytest

from executa_conformance.host.target import HostTarget, open_host
from executa_conformance.model import Result
from executa_conformance.patience import Patience
from executa_conformance.registry import checks, select
from executa_conformance.runner import run_checks
from executa_protocol.errors import UsageError

ROOT = Path(__file__).parents[2]
POOL = ROOT / "examples" / "adapters" / "anna_pool.py"
PATIENCE = Patience(start=20.0, answer=2.0, quiet=0.1, grace=1.0)


def script(text: str) -> tuple[str, ...]:
    """An adapter that is this program."""
    return (sys.executable, "-c", textwrap.dedent(text))


def run(command: tuple[str, ...], *patterns: str) -> list[Result]:
    """What these checks say of the host behind an adapter."""

    async def whole() -> list[Result]:
        async with open_host(command, PATIENCE) as target:
            found = select(checks("host"), patterns)
            alone = HostTarget(target.around)
            return await run_checks(found, alone, patience=PATIENCE)

    return asyncio.run(whole())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("print('hello')", "no answer"),
        ("raise SystemExit('out of order')", "out of order"),
        ('print(\'{"id": 1, "ok": {"adapter": 7}}\'); input()', "version 7"),
        ('print(\'{"id": 1, "error": {"kind": "usage", "message": "not now"}}\')', "not now"),
    ],
    ids=["no protocol", "ends", "another version", "refuses"],
)
def test_a_program_that_is_no_adapter_is_told_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run(script(text), "WIRE-102")


def test_a_command_that_cannot_be_started_is_told_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="cannot be started"):
        run(("/no/such/adapter",), "WIRE-102")


def test_a_host_that_starts_nothing_fails_and_is_asked_for_nothing_that_it_does_not_serve() -> None:
    adapter = script(
        """
        import json, sys
        for line in sys.stdin:
            command = json.loads(line)
            if command["op"] == "hello":
                answer = {"ok": {"adapter": 1, "name": "still", "version": "1", "serves": []}}
            else:
                answer = {"error": {"kind": "start", "message": "I start nothing"}}
            print(json.dumps({"id": command["id"], **answer}), flush=True)
        """
    )
    core, sampling, users = run(adapter, "WIRE-102", "SAMP-101", "LIFE-036")[::-1]
    by_requirement = {one.requirement.id: one for one in (core, sampling, users)}

    assert by_requirement["WIRE-102"].word == "fail"
    assert "I start nothing" in by_requirement["WIRE-102"].message
    assert by_requirement["SAMP-101"].word == "not-applicable"
    assert "'sampling'" in by_requirement["SAMP-101"].message
    assert by_requirement["LIFE-036"].word == "not-applicable"


def test_an_adapter_that_falls_makes_every_check_fail_and_none_pass() -> None:
    adapter = script(
        """
        import json, sys
        command = json.loads(sys.stdin.readline())
        print(json.dumps({"id": command["id"], "ok": {"adapter": 1}}), flush=True)
        sys.stdin.readline()
        """
    )
    results = run(adapter, "WIRE-102", "WIRE-104")

    assert [one.word for one in results] == ["fail", "fail"]
    assert all("cannot run" in one.message for one in results)


def test_the_kit_runs_on_a_host_that_is_not_ours() -> None:
    pytest.importorskip("anna_app_runtime_local")
    results = run((sys.executable, str(POOL)), "WIRE-102", "WIRE-110", "CALL-001", "HAND-101")
    words = {one.requirement.id: one.word for one in results}

    assert words == {
        "CALL-001": "pass",
        "HAND-101": "fail",
        "WIRE-102": "pass",
        "WIRE-110": "pass",
    }
