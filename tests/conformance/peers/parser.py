"""An adapter around the protocol package's own readers, and ways in which one may go wrong.

``--lie`` calls everything valid, ``--crash CASE`` ends at that case, ``--round`` prints numbers
as doubles do.
"""

import sys
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parents[3]))

import msgspec

from executa_protocol.errors import ExecutaError
from executa_protocol.manifest import ManifestError
from executa_protocol.readings import Reader
from tests.protocol import test_golden_runs, test_golden_wire
from tests.protocol.reading import Listening

Object = dict[str, Any]

READINGS = test_golden_wire.READINGS | test_golden_runs.READINGS


def answer(question: Object) -> Object:
    """What the protocol package makes of a line."""
    listening = Listening()
    reader = Reader(strict=True) if question["strict"] else listening
    try:
        decoded = READINGS[question["chapter"]](question, reader)
    except ExecutaError as fault:
        return {"reading": "invalid", "decoded": None, **_more(question, fault)}
    found = list(dict.fromkeys(listening.ids))
    if found:
        return {"reading": "tolerated", "decoded": decoded, "diagnostic": found}
    return {"reading": "valid", "decoded": decoded, "diagnostic": None}


def _more(question: Object, fault: ExecutaError) -> Object:
    if isinstance(fault, test_golden_wire.NoMessage):
        return {"outcome": test_golden_wire.outcome_of(fault.found)}
    if isinstance(fault, ManifestError):
        return {"faults": [found.path for found in fault.faults]}
    if question["chapter"] == "methods" and question["given"]["part"] == "params":
        return {"error": test_golden_wire.error_of(question, fault)}
    return {}


def rounded(value: Any) -> Any:
    """Every integer as a double would have it."""
    if isinstance(value, list):
        return [rounded(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in cast("Object", value).items()}
    return int(float(value)) if type(value) is int else value


def main(words: list[str]) -> None:
    """Answer a line for each line."""
    for line in sys.stdin.buffer:
        question = msgspec.json.decode(line)
        if words[:1] == ["--crash"] and question["case"] == words[1]:
            sys.exit("out of memory")
        said = answer(question)
        if "--lie" in words:
            said["reading"] = "valid"
        if "--round" in words:
            said = {name: rounded(value) for name, value in said.items()}
        sys.stdout.buffer.write(msgspec.json.encode({"case": question["case"], **said}) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
