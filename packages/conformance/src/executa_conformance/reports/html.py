"""One self-contained page: a matrix of everything, then each check with its exact lines.

No script and no file beside it; it can be mailed, archived and printed. What a subject sent
stands in it as text only.
"""

from html import escape
from typing import Final

from executa_conformance.model import Event, Result
from executa_conformance.report import Report

_STYLE: Final = """
:root{color-scheme:light dark;--line:#8884}
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse}td,th{padding:.2rem .7rem;text-align:left;vertical-align:top}
tr{border-bottom:1px solid var(--line)}code,pre{font:13px/1.45 ui-monospace,monospace}
pre{overflow:auto;border:1px solid var(--line);padding:.6rem;white-space:pre-wrap;
word-break:break-all}
.matrix{display:flex;flex-wrap:wrap;gap:.3rem;margin:.3rem 0 1rem}
.matrix a{padding:.1rem .4rem;border-radius:.3rem;font:12px ui-monospace,monospace;color:#fff;
text-decoration:none}
.pass{background:#2f7d4f}.fail{background:#b3362b}.should{background:#9a6a12}
.non-strict{background:#7a5cc0}.info{background:#3a6ea5}.not-applicable{background:#777}
details{border-bottom:1px solid var(--line);padding:.4rem 0}summary{cursor:pointer}
.word{display:inline-block;min-width:7.5rem;padding:0 .4rem;border-radius:.3rem;color:#fff}
.note{opacity:.75}
"""

_WAYS: Final = {">": "kit", "<": "subject", "2": "stderr", "*": "\N{MIDDLE DOT}"}


def html(report: Report) -> str:
    """The page."""
    title = f"Executa {report.role} conformance: {report.name or report.subject}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>{_summary(report)}{_matrix(report)}"
        f"<h2>Checks</h2>{_tour(report)}{''.join(map(_check, report.checks))}{_unchecked(report)}"
        "</body></html>\n"
    )


def _summary(report: Report) -> str:
    counts = ", ".join(f"{count} {word}" for word, count in report.summary.items())
    outcome = "every must is met" if not report.exit_code else f"{report.failed_musts} failed"
    rows = [
        ("subject", report.subject),
        ("calls itself", f"{report.name} {report.version}".strip()),
        ("outcome", outcome),
        ("checks", counts),
        ("reading", "strict" if report.strict else "tolerant"),
        ("revision", f"{report.revision}, kit {report.kit}"),
        ("began", f"{report.began}, took {report.seconds:.1f} s"),
    ]
    rows += [("note", note) for note in report.notes]
    if report.stale:
        rows.append(("expected to fail, and did not", ", ".join(report.stale)))
    cells = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows if value
    )
    return f"<table>{cells}</table>"


def _matrix(report: Report) -> str:
    parts: list[str] = ["<h2>Matrix</h2>"]
    for level, word in report.levels.items():
        links = "".join(
            f'<a class="{_shade(result)}" href="#{escape(result.check)}" '
            f'title="{escape(result.check)}: {_word(result)}">{escape(result.requirement.id)}</a>'
            for result in report.checks
            if result.level == level
        )
        parts.append(f'<h3>{escape(level)}: {escape(word)}</h3><div class="matrix">{links}</div>')
    return "".join(parts)


def _shade(result: Result) -> str:
    return "should" if result.word == "fail" and not result.counts else result.word


def _word(result: Result) -> str:
    if result.expected:
        return f"expected {result.word}"
    if result.word == "fail" and result.requirement.severity != "must":
        return f"fail ({result.requirement.severity})"
    return result.word


def _check(result: Result) -> str:
    rule = result.requirement
    opened = " open" if result.counts else ""
    lines = "\n".join(map(_line, result.evidence))
    message = f"<p>{escape(result.message)}</p>" if result.message else ""
    return (
        f'<details id="{escape(result.check)}"{opened}><summary>'
        f'<span class="word {_shade(result)}">{_word(result)}</span> '
        f"<code>{escape(result.check)}</code> <span class=note>{result.seconds:.2f} s</span>"
        f"</summary><p><b>{escape(rule.id)}</b> ({rule.severity}; {escape(rule.source)}): "
        f"{escape(rule.rule)}</p>{message}"
        f"{f'<pre>{lines}</pre>' if lines else ''}</details>"
    )


def _tour(report: Report) -> str:
    """The lines by which the kit got to know the subject; many checks judge them, too."""
    if not report.tour:
        return ""
    lines = "\n".join(map(_line, report.tour))
    title = "The tour that comes before the checks"
    return f"<details><summary>{title}</summary><pre>{lines}</pre></details>"


def _line(event: Event) -> str:
    size = f" [{event.size:,} bytes, cut]" if event.size else ""
    note = f" <span class=note>{escape(event.note)}</span>" if event.note else ""
    way = _WAYS[event.way]
    return f"{event.at:8.3f} {way:>7} {event.way} {escape(event.line)}{size}{note}"


def _unchecked(report: Report) -> str:
    if not report.unchecked:
        return ""
    rows = "".join(
        f"<tr><th>{escape(row.id)}</th><td>{escape(row.rule)}</td><td>{escape(row.unchecked)}</td>"
        "</tr>"
        for row in report.unchecked
    )
    return f"<h2>What no check can see</h2><table>{rows}</table>"
