"""Give what is unreleased a version: ``python scripts/release.py 1.2.3``.

The version stands in the `pyproject.toml` of the workspace; this writes it into those of the
packages and their pins of each other, and moves the fragments of `changes/` into
`CHANGELOG.md`. Without a version it prints what the changelog would get.

A fragment is a file ``changes/WHAT.KIND.md`` with one or more Markdown list items, as a user
would read them; KIND is one of `KINDS`.
"""

import argparse
import datetime
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
KINDS: Final = ("security", "removed", "deprecated", "changed", "added", "fixed")
"""Of changes, in the order in which a reader must know them."""

_MARK: Final = "<!-- releases -->\n"
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
_OWN: Final = re.compile(r'^version = "[^"]*"$', re.MULTILINE)
_PIN: Final = re.compile(r'"(executa-[a-z-]+)==[^"]*"')


class Refused(Exception):
    """What was asked for cannot be done; the words say why."""


def fragments(folder: Path) -> dict[str, list[str]]:
    """The items of every fragment by kind. Raises `Refused` for one that is none."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        kind = path.stem.rpartition(".")[2]
        text = path.read_text(encoding="utf-8").strip()
        if kind not in KINDS or "." not in path.stem:
            raise Refused(f"{path.name}: expected NAME.KIND.md with a kind of {', '.join(KINDS)}")
        if not text.startswith("- "):
            raise Refused(f"{path.name}: expected list items that begin with '- '")
        found.setdefault(kind, []).append(text)
    return found


def section(heading: str, changes: dict[str, list[str]]) -> str:
    """A part of the changelog."""
    parts = [f"## {heading}\n"]
    for kind in KINDS:
        if kind in changes:
            parts.append(f"### {kind.capitalize()}\n")
            parts.append("\n".join(changes[kind]) + "\n")
    return "\n".join(parts)


def release(root: Path, version: str, day: datetime.date) -> None:
    """Write the version everywhere, and the changelog. Raises `Refused`, having written nothing."""
    current = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    if not _VERSION.fullmatch(version):
        raise Refused(f"{version!r} is no version such as 1.2.3 or 1.2.3rc1")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if f"## {version} " in changelog:
        raise Refused(f"the changelog has {version} already; the workspace is at {current}")
    changes = fragments(root / "changes")
    if not changes:
        raise Refused("there is nothing in changes/ to release")
    before, mark, after = changelog.partition(_MARK)
    if not mark:
        raise Refused(f"CHANGELOG.md has no line {_MARK.strip()}")
    part = section(f"{version} ({day.isoformat()})", changes)
    for path in (root / "pyproject.toml", *sorted(root.glob("packages/*/pyproject.toml"))):
        text = _OWN.sub(f'version = "{version}"', path.read_text(encoding="utf-8"), count=1)
        path.write_text(_PIN.sub(rf'"\1=={version}"', text), encoding="utf-8")
    rest = after.lstrip("\n")
    text = f"{before}{mark}\n{part}" + (f"\n{rest}" if rest else "")
    (root / "CHANGELOG.md").write_text(text, encoding="utf-8")
    for path in (root / "changes").glob("*.md"):
        if path.name != "README.md":
            path.unlink()


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("version", nargs="?", help="such as 1.2.3; without it nothing is written")
    version = parser.parse_args(arguments).version
    try:
        if version is None:
            sys.stdout.write(section("Unreleased", fragments(ROOT / "changes")))
            return 0
        release(ROOT, version, datetime.datetime.now(datetime.UTC).date())
    except Refused as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    subprocess.run([os.environ.get("UV", "uv"), "lock"], cwd=ROOT, check=True)  # noqa: S603 - uv itself
    sys.stdout.write(f"{version}: look at `git diff`, then commit and tag it\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
