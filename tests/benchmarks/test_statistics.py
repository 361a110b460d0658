"""Spreads, rounds and ratios: how samples become figures."""

import pytest

from benchmarks.model import Absent, Report, Spread, WrongAnswer, spreads
from benchmarks.rounds import Sample, Trial, alternate, figure, ratio


def test_a_spread_is_median_least_and_greatest() -> None:
    assert Spread.of([3.0, 1.0, 2.0, 10.0, 2.5]) == Spread(2.5, 1.0, 10.0, 5)


def test_a_spread_keeps_small_costs_apart() -> None:
    assert Spread.of([0.000123456]).median == 0.00012346


def test_a_spread_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one round"):
        Spread.of([])


def test_only_measures_of_every_round_have_a_spread() -> None:
    found = spreads([{"a": 1.0, "b": 1.0}, {"a": 3.0}])
    assert found == {"a": Spread(2.0, 1.0, 3.0, 2)}


def counting(name: str, log: list[str], values: list[float]) -> Trial:
    """A trial that logs its turns and gives one value a round."""
    given = iter(values)

    async def take() -> Sample:
        log.append(name)
        return {"p50_us": next(given), "checked": 10}

    async def warm_up() -> None:
        log.append(f"{name} warms up")

    return Trial(name, take, warm_up)


async def test_contenders_take_turns_and_each_round_begins_with_another() -> None:
    log: list[str] = []
    trials = [counting(name, log, [1.0, 2.0, 3.0]) for name in ("a", "b")]
    await alternate("here", trials, 3, Report("suite"))
    assert log == ["a warms up", "b warms up", "a", "b", "b", "a", "a", "b"]


async def test_a_warm_up_is_not_counted() -> None:
    report = Report("suite")
    await alternate("here", [counting("a", [], [5.0])], 1, report)
    assert report.rows[0].values == {"p50_us": Spread(5.0, 5.0, 5.0, 1)}
    assert report.checked == 10


def failing(name: str, fault: Exception, after: int) -> Trial:
    """A trial that fails from some round on."""
    rounds = iter(range(100))

    async def take() -> Sample:
        if next(rounds) >= after:
            raise fault
        return {"p50_us": 1.0}

    return Trial(name, take)


async def test_a_wrong_answer_in_any_round_voids_all_of_a_contender_and_of_no_other() -> None:
    report = Report("suite")
    trials = [failing("liar", WrongAnswer("2 and 2 is 5"), 2), counting("a", [], [1.0] * 3)]
    series = await alternate("here", trials, 3, report)
    assert [(row.contender, row.void, bool(row.values)) for row in report.rows] == [
        ("liar", "2 and 2 is 5", False),
        ("a", "", True),
    ]
    assert series.values("liar", "p50_us") is None
    assert [row.contender for row in report.voided] == ["liar"]


async def test_an_absent_contender_has_no_row_and_is_named_once() -> None:
    report = Report("suite")
    for condition in ("one", "two"):
        trials = [failing("nobody", Absent("not installed"), 0)]
        await alternate(condition, trials, 2, report)
    assert report.rows == []
    assert [(gone.contender, gone.why) for gone in report.absent] == [("nobody", "not installed")]


async def test_a_void_warm_up_voids_too() -> None:
    async def lie() -> None:
        raise WrongAnswer("wrong at once")

    trial = counting("a", [], [1.0])
    trial.warm_up = lie
    report = Report("suite")
    await alternate("here", [trial], 1, report)
    assert report.rows[0].void == "wrong at once"


def test_ratios_are_taken_within_rounds_and_not_between_medians() -> None:
    report = Report("suite")
    # The machine is ten times slower in the second round, for both of them.
    ratio(report, "key", "ours over theirs", [2.0, 20.0, 3.0], [1.0, 10.0, 1.0])
    assert report.figures[0].value == Spread(2.0, 2.0, 3.0, 3)


@pytest.mark.parametrize(("over", "under"), [(None, [1.0]), ([1.0], None), ([1.0], [0.0])])
def test_without_both_sides_there_is_no_ratio(
    over: list[float] | None, under: list[float] | None
) -> None:
    report = Report("suite")
    ratio(report, "key", "title", over, under)
    assert report.figures == []


def test_a_cost_keeps_its_unit() -> None:
    report = Report("suite")
    figure(report, "cpu", "CPU", [1.0, 3.0], unit="µs")
    figure(report, "none", "CPU", None, unit="µs")
    assert [(found.key, found.unit, found.value.median) for found in report.figures] == [
        ("cpu", "µs", 2.0)
    ]
