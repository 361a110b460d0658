"""SARIF 2.1.0, as code scanners show it: one rule a requirement, one result a check.

A result has a logical location only: what is checked is a running program, not a file.
"""

from typing import Any, Final

import msgspec

from executa_conformance.model import Event, Requirement, Result
from executa_conformance.report import Report

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

_KINDS: Final = {
    "pass": "pass",
    "fail": "fail",
    "non-strict": "review",
    "info": "informational",
    "not-applicable": "notApplicable",
}
_LEVELS: Final = {"must": "error", "should": "warning", "may": "note"}


def sarif(report: Report) -> str:
    """The report as a SARIF log with one run."""
    rules = list({result.requirement.id: result.requirement for result in report.checks}.values())
    index = {rule.id: number for number, rule in enumerate(rules)}
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "executa-conformance",
                "version": report.kit,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "invocations": [{"executionSuccessful": True, "exitCode": report.exit_code}],
        "properties": {"revision": report.revision, "role": report.role, "stale": report.stale},
        "results": [_result(report, each, index[each.requirement.id]) for each in report.checks],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _rule(rule: Requirement) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.rule},
        "fullDescription": {"text": f"{rule.rule} Source: {rule.source}."},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(report: Report, result: Result, index: int) -> dict[str, Any]:
    broken = result.word == "fail" or result.counts
    found: dict[str, Any] = {
        "ruleId": result.requirement.id,
        "ruleIndex": index,
        "kind": "fail" if broken else _KINDS[result.word],
        "level": _LEVELS[result.requirement.severity] if broken else "none",
        "message": {"text": result.message or f"{result.check}: {result.word}"},
        "locations": [
            {"logicalLocations": [{"fullyQualifiedName": report.subject, "kind": "module"}]}
        ],
        "partialFingerprints": {"check/v1": result.check},
        "properties": {"check": result.check, "evidence": list(map(_line, result.evidence))},
    }
    if result.expected:
        found["suppressions"] = [{"kind": "external", "justification": "an expected failure"}]
    return found


def _line(event: Event) -> str:
    return f"{event.at:.3f} {event.way} {event.line}"
