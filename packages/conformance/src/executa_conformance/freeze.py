"""Writes the frozen set of a revision: ``python -m executa_conformance.freeze 2026-11``.

A frozen rule never changes; one that must is withdrawn and gets a successor under a new id.
So a set that exists is only completed by what is new in it, unless ``--anew`` says that the
revision is not published yet.
"""

import argparse
import sys
from pathlib import Path

from executa_conformance.catalogue import REVISION, changes, freeze

FOLDER = Path(__file__).parent / "requirements" / "frozen"


def main(words: list[str] | None = None) -> int:
    """The command. Returns its exit code: 1 if a frozen rule would have to change."""
    parser = argparse.ArgumentParser(
        prog="python -m executa_conformance.freeze",
        description="Write the digests of the requirements of a revision.",
    )
    parser.add_argument("revision", nargs="?", default=REVISION, help=f"its name ({REVISION})")
    parser.add_argument("--anew", action="store_true", help="also change what is frozen")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the sets are")
    options = parser.parse_args(words)
    path = options.folder / f"{options.revision}.json"
    if path.exists() and not options.anew:
        changed = changes(path.read_bytes())
        for line in changed:
            sys.stderr.write(f"{line}\n")
        if changed:
            return 1
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(freeze())
    return 0


if __name__ == "__main__":
    sys.exit(main())
