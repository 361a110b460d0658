"""``python -m tests.crash [--kills 500] [--seed N] [-v]``: kill, reopen, look, print findings."""

import argparse
import sys
import time

from executa_host.actions.crashpoints import POINTS
from tests.crash.saga import run


def main() -> int:
    """Run a saga; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=None, help="default: the time")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each kill")
    options = parser.parse_args()
    seed = time.time_ns() % 2**32 if options.seed is None else options.seed
    say = sys.stdout.write
    say(f"== crash: {options.kills} kills, seed {seed}\n")
    began = time.monotonic()
    report = run(options.kills, seed, verbose=options.verbose)
    for finding in report.findings:
        say(f"FOUND {finding}\n")
    missed = sorted(set(POINTS) - report.reached)
    if missed:
        say(f"points that no kill was at: {', '.join(missed)}\n")
    say(
        f"kills: {report.kills} at {len(report.reached)} of {len(POINTS)} points and at random,"
        f" on {report.files} files, in {time.monotonic() - began:.0f} s\n"
        f"findings: {len(report.findings)}\n"
    )
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
