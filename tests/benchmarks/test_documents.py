"""The JSON of a run, the comparison of two, and the document that is made of one."""

import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from benchmarks.comparing import changes, show_changes, warnings
from benchmarks.goals import judge
from benchmarks.model import Document, Missing, Report, Row, Unreadable, decode, encode, schema
from benchmarks.reporting import REPORT, REPORT_FIGURES, markdown, write_report
from benchmarks.svg import Bar, Group, chart
from benchmarks.tables import heading, show, show_goals
from tests.benchmarks.samples import document, report, spread


def whole() -> Document:
    """A document with everything in it: figures, goals met and missed, void, absent."""
    found = report(rate_over_mcp=50.0, cpu_host=99.0)
    found.rows.append(Row("1 in flight", "fastmcp", void="it said | 5"))
    found.absent.append(Missing("anna-app-runtime-local", "not installed"))
    made = document(found, report("memory", over_mcp=0.3))
    made.goals = judge(made)
    return made


def test_a_document_survives_its_json() -> None:
    assert decode(encode(whole())) == whole()


def test_the_json_has_the_members_that_its_schema_names() -> None:
    shapes, written = schema()["$defs"], json.loads(encode(whole()))
    assert set(written) == set(shapes["Document"]["properties"])
    assert set(written["reports"][0]) == set(shapes["Report"]["properties"])
    assert set(written["goals"][0]) == set(shapes["Verdict"]["properties"])
    row = written["reports"][0]["rows"][0]
    assert set(row) <= set(shapes["Row"]["properties"])
    assert set(row["values"]["p50_us"]) == set(shapes["Spread"]["properties"])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no JSON of a run"),
        (b"{}", "no JSON of a run"),
        (b'{"version": 1}', "version 1 and not"),
        (b'{"version": 2}', "no JSON of a run"),
    ],
)
def test_what_is_no_document_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        decode(data)


# --- Tables ------------------------------------------------------------------------------


def printed(*, width: int = 220) -> tuple[Console, io.StringIO]:
    """A console, and what it prints."""
    out = io.StringIO()
    return Console(file=out, width=width), out


@pytest.mark.parametrize(
    ("measure", "shown"),
    [
        ("p50_us", "p50 µs"),
        ("rate_mb_per_s", "rate MB/s"),
        ("rate_per_s", "rate /s"),
        ("kills", "kills"),
    ],
)
def test_a_measure_is_headed_by_its_name_and_unit(measure: str, shown: str) -> None:
    assert heading(measure) == shown


def test_tables_show_what_is_void_absent_and_missed() -> None:
    console, out = printed()
    made = whole()
    for each in made.reports:
        show(console, each)
    show_goals(console, made)
    text = out.getvalue()
    assert "void: it said | 5" in text
    assert "anna-app-runtime-local was not measured: not installed" in text
    assert "absent: anna-app-runtime-local" in text
    assert "missed" in text
    assert "met, and the aim" in text


def test_a_quick_run_says_that_it_is_rough() -> None:
    console, out = printed()
    made = whole()
    made.quick = True
    show_goals(console, made)
    assert "goals are judged on full runs" in out.getvalue()


# --- Comparing ------------------------------------------------------------------------------


def with_rate(median: float, least: float, greatest: float) -> Report:
    """A report with one rate."""
    values = {"rate_per_s": spread(median, least, greatest)}
    return Report("store", rows=[Row("64 callers", "executa", values)])


def test_a_change_is_one_if_the_rounds_of_the_two_are_apart() -> None:
    before = document(with_rate(100, 90, 110))
    (faster,) = changes(before, document(with_rate(200, 190, 210)))
    assert (faster.apart, faster.better, faster.quotient) == (True, True, 2.0)
    (noise,) = changes(before, document(with_rate(120, 105, 130)))
    assert not noise.apart


def test_less_of_a_cost_is_better() -> None:
    before, after = report(), report()
    after.rows[0].values["p50_us"] = spread(6, 5, 7)
    found = {each.measure: each for each in changes(document(before), document(after))}
    assert found["p50 µs"].better is True
    assert found["rate /s"].better is False


def test_what_only_one_run_has_is_not_compared() -> None:
    assert changes(document(report("memory")), document(report("store"))) == []


def test_figures_under_other_conditions_are_not_compared() -> None:
    before, after = report(cost_of_200=1.0), report(cost_of_200=2.0)
    assert any(each.condition == "the figure cost_of_200" for each in
               changes(document(before), document(after)))  # fmt: skip
    after.figures = [type(figure)(figure.key, figure.title, figure.value, note="50 plugins")
                     for figure in after.figures]  # fmt: skip
    found = changes(document(before), document(after))
    assert not any(each.condition == "the figure cost_of_200" for each in found)


def test_another_machine_and_a_quick_run_are_told() -> None:
    told = warnings(document(cores=2), document(cores=8, quick=True))
    assert told == [
        "at least one of them is a quick run: its spreads are wide",
        "cores is 2 in the one and 8 in the other",
    ]


def test_only_what_matters_is_shown_unless_all_is_asked_for() -> None:
    before, after = document(with_rate(100, 90, 110)), document(with_rate(101, 95, 111))
    console, out = printed()
    show_changes(console, before, after)
    assert "0 of 1 measures are shown" in out.getvalue()
    show_changes(console, before, after, everything=True)
    assert "1 of 1 measures are shown" in out.getvalue()


# --- The document ----------------------------------------------------------------------------


def test_the_document_has_tables_plots_and_words(tmp_path: Path) -> None:
    written = write_report(whole(), tmp_path / "page.md")
    assert {path.relative_to(tmp_path).as_posix() for path in written} == {
        "page.md",
        "page/run.json",
        "page/goals.svg",
        "page/roundtrip.svg",
        "page/memory.svg",
    } - {"page/memory.svg"}
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    for part in (
        "## Conditions",
        "## What the numbers do not show",
        "## How to add a contender",
        "![roundtrip](page/roundtrip.svg)",
        "void: it said \\| 5",
        "absent: anna-app-runtime-local",
        "**missed**",
    ):
        assert part in text
    assert "$" not in text
    assert decode((tmp_path / "page" / "run.json").read_bytes()) == whole()


def test_plots_of_an_earlier_run_are_removed(tmp_path: Path) -> None:
    write_report(whole(), tmp_path / "page.md")
    write_report(document(report("store")), tmp_path / "page.md")
    assert {path.name for path in (tmp_path / "page").glob("*.svg")} == {"store.svg"}


def test_the_document_in_the_repository_is_that_of_its_figures() -> None:
    if not REPORT_FIGURES.exists():
        assert not REPORT.exists()
        return
    made = decode(REPORT_FIGURES.read_bytes())
    assert REPORT.read_text(encoding="utf-8") == markdown(made, REPORT_FIGURES.parent.name)


def test_a_chart_is_xml_with_a_bar_and_a_number_for_each_value() -> None:
    bars = [
        Bar("<ours>", 10, 9, 12, "10 & more"),
        Bar("floor", 1_000, 900, 1_200, "1,000", "floor"),
    ]
    text = chart("rates & costs", "calls a second", [Group("64 in flight", bars)], mark=100)
    root = ET.fromstring(text)  # noqa: S314 - our own text
    space = "{http://www.w3.org/2000/svg}"
    widths = [float(rect.get("width", "0")) for rect in root.iter(f"{space}rect")]
    texts = [found.text for found in root.iter(f"{space}text")]
    assert len(widths) == 2
    assert widths[0] < widths[1]
    assert {"<ours>", "10 & more", "rates & costs", "64 in flight"} <= set(texts)


def test_a_chart_without_bars_is_refused() -> None:
    with pytest.raises(ValueError, match="has no bars"):
        chart("nothing", "µs", [Group("", [])])
