"""The example plugins in Python keep every must of every level that they declare."""

import json
import sys
from pathlib import Path

import pytest

from executa_conformance.__main__ import main

EXAMPLES = Path(__file__).parents[2] / "examples"

LEVELS = {
    "brief": {"core", "v2", "sampling", "agent"},
    "hello": {"core", "v2", "sampling", "storage"},
    "notebook": {"core", "v2", "storage"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEVELS)
def test_an_example_keeps_every_must_of_what_it_declares(name: str, tmp_path: Path) -> None:
    plugin = EXAMPLES / name / "plugin.py"
    path = tmp_path / "report.json"

    assert main(["plugin", "--json", str(path), "--", sys.executable, str(plugin)]) == 0
    report = json.loads(path.read_text(encoding="utf-8"))
    assert {level for level, word in report["levels"].items() if word == "pass"} == LEVELS[name]
    assert report["summary"]["non-strict"] == 0
