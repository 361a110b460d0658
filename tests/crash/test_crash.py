"""A few dozen kills: at every named point, and at random; `python -m tests.crash` has hundreds."""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from executa_host.actions.crashpoints import POINTS
from tests.crash.saga import kills

ROOT = Path(__file__).parents[2]
SEED = 20_261_129
KILLS = 80


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_run_twice_whenever_the_process_is_killed() -> None:
    # In a process of its own: it forks, and this one may have threads.
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash", "--kills", str(KILLS), "--seed", str(SEED)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^findings: 0$", done.stdout, re.MULTILINE), done.stdout
    match = re.search(r"^kills: (\d+) at (\d+) of (\d+) points", done.stdout, re.MULTILINE)
    assert match, done.stdout
    assert int(match[1]) >= KILLS
    assert int(match[2]) == int(match[3]) == len(POINTS)


def test_a_saga_of_this_length_comes_by_every_point() -> None:
    chance = random.Random(SEED)  # noqa: S311 - the same saga each time
    planned = list(kills(KILLS, chance))
    assert {kill.point for kill in planned if kill.point} == set(POINTS)
    assert sum(bool(kill.after) for kill in planned) >= KILLS // 5
