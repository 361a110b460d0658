"""One command gives a version to everything, and the changelog comes from its fragments."""

import datetime
import tomllib
from pathlib import Path

import pytest

from scripts.release import KINDS, Refused, fragments, main, release, section
from tests.support.sources import PACKAGES, ROOT

DAY = datetime.date(2027, 1, 2)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that a release touches, in a folder of their own."""
    names = ["pyproject.toml", "CHANGELOG.md"]
    names += [f"{path.relative_to(ROOT)}/pyproject.toml" for path in PACKAGES]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "README.md").write_text("# About\n", encoding="utf-8")
    return tmp_path


def _change(checkout: Path, name: str, text: str) -> None:
    (checkout / "changes" / name).write_text(text, encoding="utf-8")


def test_every_fragment_of_this_repository_can_be_released() -> None:
    assert set(fragments(ROOT / "changes")) <= set(KINDS)


def test_without_a_version_the_next_part_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("## Unreleased\n")


def test_a_release_writes_one_version_everywhere_and_takes_the_fragments(checkout: Path) -> None:
    _change(checkout, "stop.fixed.md", "- It stops.\n")
    _change(checkout, "token.security.md", "- It hides.\n")

    release(checkout, "9.8.7", DAY)

    for path in (checkout / "pyproject.toml", *checkout.glob("packages/*/pyproject.toml")):
        text = path.read_text(encoding="utf-8")
        assert tomllib.loads(text)["project"]["version"] == "9.8.7"
        assert "==0." not in text
    changelog = (checkout / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## 9.8.7 (2027-01-02)\n\n### Security\n\n- It hides.\n\n### Fixed" in changelog
    assert [path.name for path in (checkout / "changes").iterdir()] == ["README.md"]


def test_a_second_release_stands_above_the_first(checkout: Path) -> None:
    for version in ("9.8.7", "9.9.0"):
        _change(checkout, "one.added.md", f"- Of {version}.\n")
        release(checkout, version, DAY)

    changelog = (checkout / "CHANGELOG.md").read_text(encoding="utf-8")
    assert 0 < changelog.index("## 9.9.0") < changelog.index("## 9.8.7")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("one.md", "- x", "expected NAME.KIND.md"),
        ("one.better.md", "- x", "expected NAME.KIND.md"),
        ("one.added.md", "x", "list items"),
    ],
)
def test_a_fragment_that_is_none_stops_the_release_before_anything_is_written(
    checkout: Path, name: str, text: str, told: str
) -> None:
    _change(checkout, name, text)
    before = (checkout / "pyproject.toml").read_text(encoding="utf-8")

    with pytest.raises(Refused, match=told):
        release(checkout, "9.8.7", DAY)

    assert (checkout / "pyproject.toml").read_text(encoding="utf-8") == before


@pytest.mark.parametrize("version", ["1", "v1.2.3", "1.2.3-beta", ""])
def test_what_is_no_version_is_refused(checkout: Path, version: str) -> None:
    _change(checkout, "one.added.md", "- x")

    with pytest.raises(Refused, match="is no version"):
        release(checkout, version, DAY)


def test_a_release_of_nothing_or_of_a_version_that_was_is_refused(checkout: Path) -> None:
    with pytest.raises(Refused, match="nothing in changes"):
        release(checkout, "9.8.7", DAY)
    _change(checkout, "one.added.md", "- x")
    release(checkout, "9.8.7", DAY)
    with pytest.raises(Refused, match=r"has 9\.8\.7 already"):
        release(checkout, "9.8.7", DAY)


def test_a_part_names_kinds_in_the_order_that_a_reader_needs() -> None:
    text = section("1.0.0", {"added": ["- a"], "removed": ["- r"]})

    assert text == "## 1.0.0\n\n### Removed\n\n- r\n\n### Added\n\n- a\n"
