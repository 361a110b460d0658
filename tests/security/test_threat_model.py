"""The threat model names tests; they must exist, and each claim must have one."""

import ast
import re

from tests.support.sources import ROOT

PAGE = ROOT / "docs" / "explanation" / "threats.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
PATIENT = re.compile(r"`tests/[^`]*`")


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))

    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (ROOT / file).is_file() or name not in _tests(file)
    ]

    assert named
    assert not missing


def test_every_claim_of_the_threat_model_names_a_test() -> None:
    rows = [
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("|") and not line.startswith(("|---", "| it cannot |", "| what was"))
    ]
    claims = [row for row in rows if "shown by" not in row]

    assert claims
    assert not [row for row in claims if not NAMED.search(row)]


def test_whatever_looks_like_the_name_of_a_test_is_read_as_one() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert len(PATIENT.findall(text)) == len(NAMED.findall(text))


def test_security_md_says_how_to_report_and_leads_to_the_threat_model() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")

    assert "docs/explanation/threats.md" in text
    assert "report" in text.lower()


def _tests(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
