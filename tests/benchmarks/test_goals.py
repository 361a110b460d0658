"""The table of goals, and what a run is worth by it."""

import pytest

from benchmarks.goals import GOALS, Goal, exit_code, judge
from benchmarks.model import Document, Missing, Report, Row
from benchmarks.suites import NAMES
from tests.benchmarks.samples import document, report

LEAST = Goal("roundtrip", "rate", "calls a second", "at least", 40, 60, needs=("mcp",))
MOST = Goal("roundtrip", "cost", "cost of a call", "at most", 20, 15, unit="µs")
STATED = Goal("roundtrip", "stated", "cost in a thread", "at most", unit="µs")


@pytest.mark.parametrize(
    ("goal", "value", "met", "aimed"),
    [
        (LEAST, 39.9, False, False),
        (LEAST, 40.0, True, False),
        (LEAST, 60.0, True, True),
        (MOST, 20.1, False, False),
        (MOST, 20.0, True, False),
        (MOST, 15.0, True, True),
        (STATED, 1e9, True, True),
    ],
)
def test_a_goal_is_judged_by_the_median(goal: Goal, value: float, met: bool, aimed: bool) -> None:
    verdict = goal.judge(report("roundtrip", **{goal.key: value}))
    assert (verdict.met, verdict.aimed) == (met, aimed)
    assert verdict.figure is not None
    assert verdict.figure.median == value


def test_bounds_are_told_with_their_sense_and_unit() -> None:
    verdicts = [goal.judge(report()) for goal in (LEAST, MOST, STATED)]
    assert [(verdict.must, verdict.aim) for verdict in verdicts] == [
        ("≥ 40", "≥ 60"),
        ("≤ 20 µs", "≤ 15 µs"),
        ("state it", "state it"),
    ]


def test_an_absent_contender_counts_as_missed_and_is_named() -> None:
    found = report()
    found.absent.append(Missing("mcp", "not installed"))
    verdict = LEAST.judge(found)
    assert (verdict.met, verdict.why) == (False, "absent: mcp")


def test_a_void_contender_counts_as_missed_and_says_why() -> None:
    found = report()
    found.rows.append(Row("1 in flight", "mcp", void="it answered 5"))
    verdict = LEAST.judge(found)
    assert (verdict.met, verdict.why) == (False, "void: mcp: it answered 5")


def test_a_figure_that_is_only_stated_must_be_there() -> None:
    assert not STATED.judge(report()).met


def judged(*reports: Report, quick: bool = False) -> Document:
    made = document(*reports, quick=quick)
    made.goals = judge(made, (LEAST, MOST))
    return made


def test_goals_of_suites_that_were_not_run_are_not_judged() -> None:
    assert judged(report("framing")).goals == []
    assert exit_code(judged(report("framing"))) == 0


def test_a_full_run_fails_by_a_missed_must_and_a_quick_one_does_not() -> None:
    good, bad = report(rate=50, cost=10), report(rate=50, cost=30)
    assert exit_code(judged(good)) == 0
    assert exit_code(judged(bad)) == 1
    assert exit_code(judged(bad, quick=True)) == 0


def test_an_absent_contender_fails_a_run_of_all_suites_and_not_one_of_chosen_suites() -> None:
    found = report(cost=10)
    found.absent.append(Missing("mcp", "not installed"))
    assert exit_code(judged(found)) == 1
    assert exit_code(judged(found), chosen=True) == 0
    assert exit_code(judged(report(cost=10)), chosen=True) == 1  # there, and not measured
    found = report(cost=30)
    found.absent.append(Missing("mcp", "not installed"))
    assert exit_code(judged(found), chosen=True) == 1


def test_a_wrong_answer_fails_every_run() -> None:
    wrong = report(rate=50, cost=10)
    wrong.rows.append(Row("1 in flight", "fastmcp", void="wrong"))
    assert exit_code(judged(wrong)) == 1
    assert exit_code(judged(wrong, quick=True)) == 1


def test_every_goal_is_of_a_suite_and_its_aim_is_beyond_its_must() -> None:
    assert len({(goal.suite, goal.key) for goal in GOALS}) == len(GOALS)
    for goal in GOALS:
        assert goal.suite in NAMES
        if goal.must is not None and goal.aim is not None:
            further = goal.aim - goal.must
            assert further < 0 if goal.sense == "at most" else further > 0
