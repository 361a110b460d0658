"""What a run's results mean, and the forms that they are written in."""

import io
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from executa_conformance.model import Event, Requirement, Result, Severity, Word
from executa_conformance.report import Expected, Report, judge
from executa_conformance.reports import FORMS, badge, html, junit, sarif, structured
from executa_conformance.reports.terminal import Terminal

NASTY = "<script>alert('x')</script> & \x1b[31m \x00 ]]> \ud7ff"


def result(
    word: Word, number: int = 1, severity: Severity = "must", message: str = "seen"
) -> Result:
    row = Requirement(f"LIFE-{number:03}", "R-26", severity, "plugin", "It ends.")
    evidence = [Event(0.1, ">", '{"id":1}'), Event(0.2, "<", NASTY, 9000, "cut")]
    name = f"LIFE-{number:03}:ends"
    return Result(name, row, "core", word, message, 0.25, evidence=evidence)


def report(*results: Result, expected: str = "", only: bool = False, **more: Any) -> Report:
    whole = Report(
        role="plugin",
        subject="node 'my plugin.js'",
        name="mine",
        version="1.0",
        began="2026-11-29T12:00:00+00:00",
        seconds=1.5,
        checks=list(results),
        **more,
    )
    return judge(whole, Expected(expected), only=only)


# --- What it means -----------------------------------------------------------------------------


def test_a_failed_must_makes_the_run_fail() -> None:
    found = report(result("pass"), result("fail", 2))

    assert (found.exit_code, found.failed_musts) == (1, 1)
    assert found.levels == {"core": "fail"}
    assert found.summary["fail"] == found.summary["pass"] == 1


@pytest.mark.parametrize("severity", ["should", "may"])
def test_a_failed_should_or_may_is_told_and_does_not_count(severity: Severity) -> None:
    found = report(result("fail", severity=severity))

    assert found.exit_code == 0
    assert found.summary["fail"] == 1
    assert found.levels == {"core": "pass"}


@pytest.mark.parametrize("severity", ["must", "should"])
@pytest.mark.parametrize(("strict", "code"), [(False, 0), (True, 1)])
def test_a_tolerated_spelling_counts_in_strict_reading(
    severity: Severity, strict: bool, code: int
) -> None:
    assert report(result("non-strict", severity=severity), strict=strict).exit_code == code


def test_an_expected_failure_does_not_count() -> None:
    found = report(result("fail"), expected="# known\nLIFE-001  # issue 7\n")

    assert found.exit_code == 0
    assert found.checks[0].expected
    assert found.stale == []


def test_an_expected_failure_that_passes_fails_the_run() -> None:
    found = report(result("pass"), result("fail", 2), expected="LIFE-001:ends\nLIFE-002\n")

    assert (found.exit_code, found.failed_musts) == (1, 0)
    assert found.stale == ["LIFE-001:ends"]


def test_an_expected_failure_of_no_check_at_all_is_stale_unless_some_did_not_run() -> None:
    assert report(result("pass"), expected="LIFE-099").stale == ["LIFE-099"]
    assert report(result("pass"), expected="LIFE-099", only=True).stale == []
    assert report(result("pass"), expected="LIFE-001", only=True).stale == ["LIFE-001"]


def test_a_level_of_which_nothing_applies_says_why() -> None:
    found = report(result("not-applicable", message="the manifest does not declare llm.sample"))

    assert found.levels == {"core": "the manifest does not declare llm.sample"}
    assert found.exit_code == 0


# --- Forms -------------------------------------------------------------------------------------


@pytest.fixture
def mixed() -> Report:
    return report(
        result("pass"),
        result("fail", 2, message=NASTY),
        result("fail", 3, "should"),
        result("fail", 4),
        result("non-strict", 5),
        result("info", 6),
        result("not-applicable", 7),
        expected="LIFE-004\nLIFE-001",
    )


def test_json_has_everything_and_reads_back(mixed: Report) -> None:
    again = msgspec.json.decode(structured(mixed), type=Report)

    assert again == mixed


def test_junit_counts_what_counts(mixed: Report) -> None:
    root = ET.fromstring(junit(mixed))  # noqa: S314 - our own output
    suite = root.find("testsuite[@name='core']")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("7", "1", "5")
    failures = root.findall(".//failure")
    assert [failure.get("message", "")[:8] for failure in failures] == ["It ends.", "expected"]
    assert "<script>" in (failures[0].text or "")


SARIF: dict[str, Any] = {
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "items": {
                "required": ["tool", "results"],
                "properties": {
                    "results": {
                        "items": {
                            "required": ["ruleId", "ruleIndex", "kind", "level", "message"],
                            "properties": {
                                "kind": {
                                    "enum": [
                                        "notApplicable",
                                        "pass",
                                        "fail",
                                        "review",
                                        "open",
                                        "informational",
                                    ]
                                },
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"required": ["text"]},
                            },
                        }
                    }
                },
            }
        },
    },
}
"""What of the SARIF schema concerns us."""


def test_sarif_says_levels_by_severity_and_suppresses_what_was_expected(mixed: Report) -> None:
    log = msgspec.json.decode(sarif(mixed))
    validator: Any = Draft202012Validator(SARIF)
    validator.validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    levels = {rules[each["ruleIndex"]]: each["level"] for each in run["results"]}

    assert levels["LIFE-002"] == "error"
    assert levels["LIFE-003"] == "warning"
    assert levels["LIFE-001"] == levels["LIFE-007"] == "none"
    assert all(each["level"] == "none" for each in run["results"] if each["kind"] != "fail")
    suppressed = [each["ruleId"] for each in run["results"] if "suppressions" in each]
    assert suppressed == ["LIFE-004"]


class Page(HTMLParser):
    """Tags and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        links = [value or "" for name, value in attrs if name in ("src", "href")]
        self.sources += [link for link in links if not link.startswith("#")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_stands_alone_and_shows_what_was_sent_as_text(mixed: Report) -> None:
    page = Page()
    page.feed(html(mixed))

    assert "script" not in page.tags
    assert page.sources == []
    assert "<script>alert('x')</script>" in page.text
    assert page.tags.count("details") == 7
    for name in ("LIFE-001", "LIFE-007", "R-26", "It ends.", '{"id":1}', "9,000 bytes"):
        assert name in page.text


def test_the_badge_says_what_passed_or_how_much_failed(mixed: Report) -> None:
    for found, words in ((mixed, "1 failed"), (report(result("pass")), "core")):
        root = ET.fromstring(badge(found))  # noqa: S314 - our own output
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert texts == [f"executa plugin {found.revision}", words]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_writes_a_report_without_checks(form: str) -> None:
    assert FORMS[form](report())


def test_what_a_terminal_would_obey_is_shown_and_not_sent(mixed: Report) -> None:
    stream = io.StringIO()
    Terminal(stream).report(mixed)
    text = stream.getvalue()

    assert "\x1b" not in text
    assert "\x00" not in text
    assert "\\u001b[31m" in text
    assert re.search(r"mine 1\.0 does not conform to executa 2026-11 \(plugin\)", text)
    assert "1 pass, 3 fail (2 not counted), 1 non-strict, 1 info, 1 not-applicable" in text
    assert "fail (should) LIFE-003:ends" in text
    assert "expected fail LIFE-004:ends" in text
    assert "LIFE-001: expected to fail, and did not" in text
