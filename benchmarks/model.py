"""What a run found out, as data: the shapes of the JSON that `run` writes.

Owns the shapes and how rounds become spreads; measuring is `rounds`' and the drivers'
business, and whether a figure is good is judged by `goals`.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import msgspec
from msgspec import Struct

VERSION: Final = 2
"""Of the document; `compare` and `report` read no other."""


class WrongAnswer(Exception):
    """A contender answered wrongly or not at all, which voids its figures."""


class Absent(Exception):
    """A contender is not installed, or cannot run on this system."""


LEFT_OUT: Final = "left out: only our own code is measured"
"""Why a contender is absent from a run without peers."""


STATED: Final = "state it"
"""The bound of a goal that asks only for its figure."""


class Spread(Struct, frozen=True):
    """A figure over all rounds: its median, the least and the greatest."""

    median: float
    least: float
    greatest: float
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """The spread of one value a round. Raises ValueError without any."""
        if not values:
            msg = "a spread needs at least one round"
            raise ValueError(msg)
        middle, least, greatest = statistics.median(values), min(values), max(values)
        return cls(_rounded(middle), _rounded(least), _rounded(greatest), len(values))


class Row(Struct, frozen=True, omit_defaults=True):
    """One contender under one condition.

    `values` are its measures by name; the name ends with the unit (``p50_us``,
    ``rate_per_s``, ``peak_plugin_mib``). `void` says why there are none.
    """

    condition: str
    contender: str
    values: dict[str, Spread] = {}
    void: str = ""


class Figure(Struct, frozen=True, omit_defaults=True):
    """A figure that stands for a suite, a ratio within the same round or a cost.

    `key` is what goals look for. `note` says what differs from the condition that the
    goal names, a quick run's fewer plugins for instance.
    """

    key: str
    title: str
    value: Spread
    unit: str = "x"
    note: str = ""


class Missing(Struct, frozen=True):
    """A contender that was not measured, and why."""

    contender: str
    why: str


class Report(Struct):
    """What one suite found out. `checked` counts the answers that were checked."""

    suite: str
    rows: list[Row] = []
    figures: list[Figure] = []
    absent: list[Missing] = []
    checked: int = 0
    seconds: float = 0.0

    @property
    def voided(self) -> list[Row]:
        """The rows whose contender answered wrongly."""
        return [row for row in self.rows if row.void]

    def figure(self, key: str) -> Figure | None:
        """The figure of that key."""
        return next((figure for figure in self.figures if figure.key == key), None)


class Verdict(Struct, frozen=True):
    """One goal of the table held against a run.

    `why` says why there is no figure; `absent`, that a contender is not installed.
    """

    suite: str
    key: str
    title: str
    must: str
    aim: str
    met: bool
    aimed: bool
    figure: Spread | None = None
    unit: str = "x"
    why: str = ""
    absent: bool = False


class Document(Struct):
    """Everything of one run. `quick` figures are rough: goals are judged on full runs."""

    version: int
    quick: bool
    seed: int
    environment: dict[str, Any]
    reports: list[Report]
    goals: list[Verdict] = []

    def report(self, suite: str) -> Report | None:
        """The report of that suite."""
        return next((report for report in self.reports if report.suite == suite), None)


class Unreadable(Exception):
    """A file is no document of a run."""


def encode(document: Document) -> bytes:
    """The document as indented JSON with a line end."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def decode(data: bytes) -> Document:
    """Read what `encode` wrote. Raises `Unreadable`."""
    try:
        version = msgspec.json.decode(data, type=_Versioned).version
        if version != VERSION:
            msg = f"the file has version {version} and not {VERSION}; run the suites again"
            raise Unreadable(msg)
        return msgspec.json.decode(data, type=Document)
    except msgspec.MsgspecError as fault:
        msg = f"no JSON of a run: {fault}"
        raise Unreadable(msg) from None


def schema() -> dict[str, Any]:
    """The JSON Schema of a document."""
    return msgspec.json.schema(Document)


def spreads(samples: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """One spread for each measure that all samples of a contender have."""
    names = [name for name in samples[0] if all(name in sample for sample in samples)]
    return {name: Spread.of([sample[name] for sample in samples]) for name in names}


class _Versioned(Struct):
    version: int


def _rounded(value: float) -> float:
    """Five significant digits: more are noise, and fewer would hide small costs."""
    return float(f"{value:.5g}")
