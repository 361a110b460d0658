"""What one line breaks: tolerated spellings as the protocol's readers report them, and faults.

Owns the reading of one line's content; which line answers which is `lookout`'s business.
"""

import json
from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Raw, Struct

from executa_conformance import schemas
from executa_conformance.evidence import SHOWN_BYTES
from executa_protocol import codec
from executa_protocol.codes import PARSE_ERROR
from executa_protocol.envelope import Malformed
from executa_protocol.errors import ExecutaError
from executa_protocol.handshake import read_answer
from executa_protocol.manifest_reading import read_manifest
from executa_protocol.methods import METHODS
from executa_protocol.methods.agent_results import read_history_result, read_run_result
from executa_protocol.methods.core import read_health_result
from executa_protocol.methods.files import read_download_url_result, read_upload_begin_result
from executa_protocol.methods.invoke import read_invoke_result
from executa_protocol.methods.sampling import read_sampling_result
from executa_protocol.readings import Finding, Reader

SCHEMA: Final = "schema"
"""What stands in place of a requirement where a line breaks a schema."""

VALUE: Final = "value"
"""The same, where params meet the schema and a reader refuses a value in them."""

Part = Literal["params", "result"]
ReadResult = Callable[[bytes | Raw, Reader], Any]


class Sighting(Struct, frozen=True):
    """A rule that a line breaks. `tolerated` says that only strict mode refuses it (R-03).

    `line` is the head of the line.
    """

    requirement: str
    message: str
    tolerated: bool = False
    line: bytes = b""


def _manifest(data: bytes | Raw, reader: Reader) -> Any:
    return read_manifest(data, reader=reader, fallback_name="plugin")


_RESULTS: Final[dict[str, ReadResult]] = {
    "initialize": read_answer,
    "describe": _manifest,
    "health": read_health_result,
    "invoke": read_invoke_result,
    "sampling/createMessage": read_sampling_result,
    "agent/complete": read_sampling_result,
    "agent/session.run": read_run_result,
    "agent/session.history": read_history_result,
    "files/upload_begin": read_upload_begin_result,
    "files/download_url": read_download_url_result,
}


class Notes:
    """Gathers what one line breaks. `reader` reports into it."""

    def __init__(self, line: bytes = b"") -> None:
        self.found: list[Sighting] = []
        self._line = line[:SHOWN_BYTES]
        self.reader = Reader(report=self._departure)

    def _departure(self, finding: Finding) -> None:
        self.tolerated(finding.requirement, finding.message)

    def broken(self, requirement: str, message: str) -> None:
        """Note a rule that is broken."""
        self.found.append(Sighting(requirement, message, line=self._line))

    def tolerated(self, requirement: str, message: str) -> None:
        """Note a departure that tolerant mode accepts."""
        self.found.append(Sighting(requirement, message, tolerated=True, line=self._line))

    def params(self, method: str, raw: Any) -> None:
        """Hold the params of a request against their reader and their schema."""
        info = METHODS.get(method)
        if info is not None and info.read is not None:
            read = info.read
            if method == "agent/complete" and isinstance(raw, Raw) and _has_prompt(raw):
                read(raw, self.reader)  # the seed's own shorthand, which the schema does not tell
                return
            self._hold(raw, method, "params", lambda: read(raw, self.reader))

    def result(self, method: str, raw: Raw) -> None:
        """Hold a result against its reader and its schema."""
        read = _RESULTS.get(method)
        self._hold(raw, method, "result", lambda: read and read(raw, self.reader))

    def error(self, raw: Raw) -> None:
        """Hold the error member of a response against its schema."""
        for fault in schemas.faults(codec.decode_any(raw), "error"):
            self.broken("WIRE-019", f"error: {fault}")

    def _hold(self, raw: Any, method: str, part: Part, read: Callable[[], Any]) -> None:
        before = len(self.found)
        try:
            read()
        except ExecutaError as fault:
            fits = part == "params" and not _schema_faults(raw, method, part)
            self.broken(VALUE if fits else SCHEMA, f"{part} of {method}: {fault}")
            return
        if len(self.found) > before or not isinstance(raw, Raw):
            return  # a tolerated spelling breaks the schema, too; it has its own requirement
        for fault in _schema_faults(raw, method, part):
            self.broken(SCHEMA, f"{part} of {method}: {fault}")

    def malformed(self, message: Malformed, line: bytes) -> None:
        """Note the rule that a line breaks which is no message."""
        if message.code != PARSE_ERROR:
            identity = "WIRE-017" if message.role == "request" else "WIRE-018"
        elif not line.lstrip().startswith(b"{"):
            identity = "WIRE-010"
        elif "deeper" in message.reason:
            identity = "WIRE-013"
        else:
            identity = "WIRE-012" if _is_json_to_python(line) else "WIRE-009"
        self.broken(identity, f"{line[:60]!r}: {message.reason}")


def _has_prompt(raw: Raw) -> bool:
    params = codec.decode_any(raw)
    return isinstance(params, dict) and "prompt" in params


def _schema_faults(raw: Any, method: str, part: Part) -> list[str]:
    value: Any = codec.decode_any(raw) if isinstance(raw, Raw) else {}
    return schemas.faults(value, schema_name(method, part))


def schema_name(method: str, part: Part) -> str:
    """How the schema of a method's params or result is called."""
    return f"{method.replace('/', '.')}.{part}"


def _is_json_to_python(line: bytes) -> bool:
    """Whether only a number or a surrogate stands between this line and JSON.

    Python's own reader is looser than the wire: it takes NaN, Infinity, 1e999 and lone
    surrogates.
    """
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
