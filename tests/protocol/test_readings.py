"""Strict and tolerant reading: one decision in one place (R-03)."""

import pytest

from executa_protocol.errors import StrictRefusal
from executa_protocol.readings import STRICT, TOLERANT, Finding, Reader


def test_a_tolerant_reader_reports_and_goes_on() -> None:
    findings: list[Finding] = []
    reader = Reader(report=findings.append)
    reader.tolerate("WIRE-001", "no version")
    reader.tolerate("WIRE-002", "an odd id")
    assert findings == [Finding("WIRE-001", "no version"), Finding("WIRE-002", "an odd id")]


def test_a_tolerant_reader_may_tell_nobody() -> None:
    TOLERANT.tolerate("WIRE-001", "no version")
    Reader().tolerate("WIRE-001", "no version")


@pytest.mark.parametrize("reader", [STRICT, Reader(strict=True)])
def test_a_strict_reader_refuses_by_the_requirement(reader: Reader) -> None:
    with pytest.raises(StrictRefusal, match=r"^WIRE-001: no version$") as caught:
        reader.tolerate("WIRE-001", "no version")
    assert caught.value.requirement == "WIRE-001"


def test_a_strict_reader_does_not_also_report() -> None:
    findings: list[Finding] = []
    with pytest.raises(StrictRefusal):
        Reader(strict=True, report=findings.append).tolerate("WIRE-001", "no version")
    assert findings == []
