"""Suite `soak`: a short soak as part of a run, with the command's own load and checks."""

from benchmarks.model import Report, Row, Spread
from benchmarks.rounds import figure
from benchmarks.scale import Scale
from benchmarks.soak import soak

PLUGINS = 50
SECONDS = 30.0


async def run(scale: Scale) -> Report:
    """Many plugins with kills, time-outs and cancels: nothing may be lost, wrong or leak."""
    report = Report("soak")
    plugins, seconds = scale.part(PLUGINS, least=2), max(1.0, SECONDS * scale.size)
    found = await soak(plugins, seconds)
    condition = f"{plugins} plugins, {seconds:g} s"
    if not found["ok"]:
        why = f"{found['wrong']} wrong, {found['unanswered']} unanswered, leaks {found['leaks']}"
        report.rows.append(Row(condition, "executa", void=f"{why}; {found['examples'][:2]}"[:500]))
        return report
    ended: int = sum(found["outcomes"].values())
    values = {
        "invokes_per_s": float(ended) / seconds,
        "kills": float(found["outcomes"].get("killed", 0)),
        "reverse_calls": float(found["outcomes"].get("reverse calls", 0)),
        "peak_host_mib": found["peak_memory_mib"]["host"],
        "peak_all_mib": found["peak_memory_mib"]["host_and_plugins"],
    }
    report.rows.append(
        Row(condition, "executa", {name: Spread.of([value]) for name, value in values.items()})
    )
    report.checked = ended
    figure(report, "lost", "calls lost, wrong or leaked", [0.0], unit="calls")
    return report
