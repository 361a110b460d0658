"""Checks the plugin pool of `anna-app-runtime-local` and writes the report into docs/conformance/.

Owns where the report is kept and what it is called: by the version that is installed and the day.
A report of another version or day stays. Exits with 0 if the report was written, whatever it says.
"""

import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

PACKAGE: Final = "anna-app-runtime-local"
ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "conformance"
ADAPTER: Final = Path("examples") / "adapters" / "anna_pool.py"

PATIENCE: Final = "0.25"
"""What does not come from a pool in half the time of one answer does not come at all."""


def main() -> int:
    """Run the kit. Returns the exit code."""
    day = datetime.now(UTC).date().isoformat()
    stem = FOLDER / f"{PACKAGE}-{version(PACKAGE)}-{day}"
    reports = {form: stem.with_name(f"{stem.name}.{form}") for form in ("html", "json")}
    words = [word for form, path in reports.items() for word in (f"--{form}", str(path))]
    kit = [sys.executable, "-m", "executa_conformance", "host", "--patience", PATIENCE, *words]
    # A relative path and a bare name: the report quotes the command, and is read elsewhere.
    command = [*kit, "--", "python", str(ADAPTER)]
    done = subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603 - the kit itself
    if done.returncode not in (0, 1):
        return done.returncode
    for path in reports.values():
        sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
