"""The badge: an SVG that says what passed, with no font or file of its own."""

from typing import Final
from xml.sax.saxutils import escape

from executa_conformance.report import Report

_WIDTH: Final = 6.6
"""Pixels of one character of 11 pixels, on average and a little more."""

_GREEN: Final = "#2f7d4f"
_RED: Final = "#b3362b"


def badge(report: Report) -> str:
    """``executa 2026-11 | core v2 sampling``, green if the run passed, red if it failed."""
    left = f"executa {report.role} {report.revision}"
    passed = [level for level, word in report.levels.items() if word == "pass"]
    failed = report.exit_code != 0
    count = report.failed_musts
    right = (f"{count} failed" if count else "stale") if failed else " ".join(passed) or "none"
    color = _RED if failed else _GREEN
    one, two = round(len(left) * _WIDTH + 12), round(len(right) * _WIDTH + 12)
    label = escape(f"{left}: {right}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{one + two}" height="20" role="img" '
        f'aria-label="{label}"><title>{label}</title>'
        f'<clipPath id="r"><rect width="{one + two}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{one}" height="20" fill="#444"/>'
        f'<rect x="{one}" width="{two}" height="20" fill="{color}"/></g>'
        '<g fill="#fff" text-anchor="middle" font-size="11" '
        'font-family="Verdana,DejaVu Sans,sans-serif">'
        f'<text x="{one / 2}" y="14">{escape(left)}</text>'
        f'<text x="{one + two / 2}" y="14">{escape(right)}</text></g></svg>\n'
    )
