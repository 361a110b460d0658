"""The generated documents: current, complete, and rewritten by the command."""

from pathlib import Path

import msgspec
import pytest

from executa_protocol import schema
from executa_protocol.codes import TABLE
from executa_protocol.methods import METHODS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_checked_in_documents_are_current() -> None:
    assert schema.differences(DOCS) == []


def test_every_error_code_is_in_the_page() -> None:
    page = (DOCS / "errors.md").read_text(encoding="utf-8")
    for row in TABLE:
        assert f"| {row.number} | `{row.symbol}` | `{row.name}` |" in page


def test_every_served_method_has_its_schemas() -> None:
    found = schema.schemas()
    for info in METHODS.values():
        stem = info.name.replace("/", ".")
        assert (f"{stem}.params" in found) == (info.params is not None)
        assert (f"{stem}.result" in found) == (info.result is not None)


@pytest.mark.parametrize("name", schema.schemas())
def test_every_reference_of_a_schema_is_defined_in_it(name: str) -> None:
    document = schema.schemas()[name]
    assert document["$schema"] == schema.DRAFT
    text = msgspec.json.encode(document).decode()
    defined = document.get("$defs", {})
    for part in text.split('"$ref":"#/$defs/')[1:]:
        assert part.partition('"')[0] in defined


def test_wire_names_and_limits_stand_in_the_schema() -> None:
    params = schema.schemas()["sampling.createMessage.params"]["$defs"]["SamplingParams"]
    assert {"maxTokens", "_clientTimeoutS"} <= params["properties"].keys()
    assert params["properties"]["maxTokens"]["minimum"] == 1
    invoke = schema.schemas()["invoke.params"]["$defs"]["InvokeParams"]
    assert invoke["properties"]["arguments"] == {"type": "object"}


def test_the_command_writes_checks_and_tidies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--docs", str(tmp_path)]
    assert schema.main([*arguments, "--check"]) == 1
    assert "missing: " in capsys.readouterr().err

    assert schema.main(arguments) == 0
    assert schema.main([*arguments, "--check"]) == 0

    (tmp_path / "errors.md").write_text("old", encoding="utf-8")
    (tmp_path / "schema" / "gone.json").write_text("{}", encoding="utf-8")
    assert schema.main([*arguments, "--check"]) == 1
    shown = capsys.readouterr().err
    assert "differs: " in shown
    assert "not ours: " in shown

    assert schema.main(arguments) == 0
    assert schema.differences(tmp_path) == []
