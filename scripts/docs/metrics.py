"""`docs/reference/metrics.md`: every metric that a host tells, with its labels."""

from typing import Any, Final

from executa_host.observe.metrics import SECONDS, Metrics
from scripts.docs.markdown import code, page, table

_INTRO: Final = """\
The extra `metrics` (`executa-host[metrics]`) turns trace events into Prometheus metrics. Labels
are names that a manifest or the protocol bounds, never users, invokes or texts, so that the
number of series stays small.
"""


def metrics_page() -> str:
    """Every metric of a fresh registry."""
    rows = [
        (code(name), kind, ", ".join(map(code, names)), text)
        for name, kind, names, text in metrics()
    ]
    parts = [
        *_INTRO.splitlines(),
        "",
        *table(("Metric", "Kind", "Labels", "Counts"), rows),
        f"Buckets of durations, in seconds: {', '.join(f'{each:g}' for each in SECONDS)}.",
        "",
    ]
    return page("Metrics", parts)


def metrics() -> list[tuple[str, str, tuple[str, ...], str]]:
    """Name as it is scraped, kind, labels and text of every metric, by name."""
    registry: Any = Metrics().registry
    collectors = {id(each): each for each in registry._names_to_collectors.values()}  # noqa: SLF001 - the library has no public list with labels
    found: list[tuple[str, str, tuple[str, ...], str]] = []
    for each in collectors.values():
        (family,) = each.describe()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found.append((name, family.type, each._labelnames, family.documentation))  # noqa: SLF001 - as above
    return sorted(found)
