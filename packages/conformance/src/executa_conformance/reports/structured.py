"""The whole report as JSON: members as `executa_conformance.report.Report` names them."""

import msgspec

from executa_conformance.report import Report


def structured(report: Report) -> str:
    """The report as an indented JSON document."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
