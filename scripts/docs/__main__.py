"""Write the generated pages of `docs/`, or check that they are current.

python -m scripts.docs [--check]
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from scripts.docs.commands import commands_page
from scripts.docs.configuration import configuration_page
from scripts.docs.http_api import api_page
from scripts.docs.licences import licences_page
from scripts.docs.limits import limits_page
from scripts.docs.metrics import metrics_page
from scripts.docs.names import names_page, protocol_page
from scripts.docs.wire import manifest_page, wire_page

DOCS: Final = Path(__file__).parents[2] / "docs"

PAGES: Final[dict[str, Callable[[], str]]] = {
    "project/licences.md": licences_page,
    "reference/commands.md": commands_page,
    "reference/configuration.md": configuration_page,
    "reference/http-api.md": api_page,
    "reference/limits.md": limits_page,
    "reference/manifest.md": manifest_page,
    "reference/metrics.md": metrics_page,
    "reference/python-protocol.md": protocol_page,
    "reference/python.md": names_page,
    "reference/wire.md": wire_page,
}
"""Every generated page by its path below `docs/`."""


def stale(docs: Path = DOCS) -> list[str]:
    """The pages that are not as they would be written."""
    found: list[str] = []
    for name, write in PAGES.items():
        path = docs / name
        if not path.is_file() or path.read_text(encoding="utf-8") != write():
            found.append(name)
    return found


def write(docs: Path = DOCS) -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_text(make(), encoding="utf-8")


def main() -> int:
    """The command. Returns its exit code: 1 if a page is stale."""
    parser = argparse.ArgumentParser(prog="python -m scripts.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    if not parser.parse_args().check:
        write()
        return 0
    found = stale()
    for name in found:
        sys.stderr.write(f"not current: docs/{name}; run make reference\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
