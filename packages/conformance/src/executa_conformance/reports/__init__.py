"""The forms that a report takes: JSON, JUnit XML, SARIF, one HTML page, a badge, a table.

Each form is a function from a `Report` to text. None looks at the subject again.
"""

from collections.abc import Callable
from typing import Final

from executa_conformance.report import Report
from executa_conformance.reports.badge import badge
from executa_conformance.reports.html import html
from executa_conformance.reports.junit import junit
from executa_conformance.reports.sarif import sarif
from executa_conformance.reports.structured import structured

__all__ = ["FORMS", "badge", "html", "junit", "sarif", "structured"]

FORMS: Final[dict[str, Callable[[Report], str]]] = {
    "json": structured,
    "junit": junit,
    "sarif": sarif,
    "html": html,
    "badge": badge,
}
"""Every form that can be written to a file, by the name of its option."""
