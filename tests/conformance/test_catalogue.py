"""Requirements and checks hold each other, and a frozen rule does not change."""

import re
from pathlib import Path

import msgspec
import pytest

from executa_conformance import catalogue, freeze
from executa_conformance.catalogue import changes, digest, frozen, requirements
from executa_conformance.model import ROLES, Requirement, Role
from executa_conformance.registry import check, checks, select

FORM = re.compile(r"[A-Z]{3,5}-\d{3}")

each_role = pytest.mark.parametrize("role", ROLES)


@each_role
def test_every_must_has_a_check_or_says_why_it_has_none(role: Role) -> None:
    covered = {found.requirement for found in checks(role)}
    bare = [
        row.id
        for row in requirements().values()
        if role in row.roles
        and row.severity == "must"
        and row.id not in covered
        and not row.unchecked
    ]

    assert bare == []


@each_role
def test_no_requirement_that_is_checked_says_that_it_cannot_be(role: Role) -> None:
    rows = requirements()
    both = [
        found.name
        for found in checks(role)
        if rows[found.requirement].unchecked and rows[found.requirement].role != "both"
    ]

    assert both == []


def test_every_requirement_has_an_id_a_source_and_a_sentence() -> None:
    for row in requirements().values():
        assert FORM.fullmatch(row.id), row
        assert re.search(r"seed [a-z-]+(, .+)?|R-\d\d|WHATWG", row.source), row
        assert row.rule.endswith("."), row
        assert not row.unchecked or row.unchecked.endswith("."), row


def test_a_check_needs_a_requirement_of_its_role() -> None:
    async def nothing(scene: object) -> None:
        """Never run."""

    with pytest.raises(ValueError, match="no requirement LIFE-999"):
        check("LIFE-999", role="plugin")(nothing)
    with pytest.raises(ValueError, match="no requirement GOLD-001 for a plugin"):
        check("GOLD-001", role="plugin")(nothing)


def test_two_checks_cannot_have_one_name() -> None:
    known = checks("plugin")[0]

    with pytest.raises(ValueError, match="registered twice"):
        check(known.requirement, role="plugin", name=known.name.partition(":")[2])(known.function)


def test_checks_are_selected_by_requirement_name_and_level() -> None:
    found = checks("plugin")

    assert {one.requirement for one in select(found, ["LIFE-01*"])} == {
        "LIFE-016",
        "LIFE-017",
        "LIFE-018",
        "LIFE-019",
    }
    assert {one.level for one in select(found, ["files"])} == {"files"}
    assert [one.name for one in select(found, ["*:crlf-ends-a-line"])] == [
        "WIRE-101:crlf-ends-a-line"
    ]
    assert select(found, []) == found


def test_a_pattern_that_fits_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no check fits 'LIVE-\\*'"):
        select(checks("plugin"), ["LIFE-*", "LIVE-*"])


def test_frozen_rules_have_not_changed() -> None:
    assert changes(frozen()) == []


def test_every_requirement_is_in_the_frozen_set() -> None:
    stored = msgspec.json.decode(frozen(), type=dict[str, str])

    assert requirements().keys() - stored.keys() == set(), "python -m executa_conformance.freeze"


@pytest.mark.parametrize("member", ["source", "severity", "role", "rule"])
def test_a_rule_that_changes_in_any_member_is_noticed(
    member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = requirements()["LIFE-001"]
    other = {"source": "R-99", "severity": "may", "role": "both", "rule": "Another."}
    changed = msgspec.structs.replace(row, **{member: other[member]})
    monkeypatch.setattr(catalogue, "requirements", lambda: {**requirements(), row.id: changed})

    assert changes(frozen()) == ["LIFE-001 has changed; a rule that changes needs a new id"]


def test_an_excuse_does_not_change_a_rule() -> None:
    row = Requirement("X-001", "R-01", "must", "plugin", "A rule.")

    assert digest(row) == digest(msgspec.structs.replace(row, unchecked="Nobody can see it."))


def test_a_frozen_file_is_completed_and_not_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "2026-11.json"
    stored = msgspec.json.decode(frozen(), type=dict[str, str])
    fewer = {key: value for key, value in stored.items() if key != "LIFE-001"}
    path.write_bytes(msgspec.json.encode(fewer))

    assert freeze.main(["2026-11", "--folder", str(tmp_path)]) == 0
    assert path.read_bytes() == frozen()

    path.write_bytes(msgspec.json.encode({**stored, "LIFE-001": "0", "LIFE-000": "1"}))
    assert freeze.main(["2026-11", "--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "LIFE-001 has changed; a rule that changes needs a new id",
        "LIFE-000 is gone; withdraw it, but keep it listed",
    ]
    assert freeze.main(["2026-11", "--folder", str(tmp_path), "--anew"]) == 0
    assert path.read_bytes() == frozen()
