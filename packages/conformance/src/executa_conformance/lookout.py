"""Looks at every line that crosses, in both directions, and says which rules it breaks.

What the subject sent is read by the protocol's own readers, which report tolerated spellings
by requirement, and then held against the JSON Schema of its method. What the kit sent is held
against the same schemas and strict reading; there a fault is the kit's and is raised.
"""

from typing import Any

from msgspec import UNSET, Raw

from executa_conformance import schemas
from executa_conformance.sightings import Notes, Sighting, schema_name
from executa_protocol import codec
from executa_protocol.envelope import Id, Malformed, Message, parse
from executa_protocol.framing import BOM
from executa_protocol.limits import MAX_LINE
from executa_protocol.methods import canonical_name
from executa_protocol.methods.progress import METHOD as PROGRESS
from executa_protocol.methods.progress import SHORT_NAME
from executa_protocol.readings import STRICT

Key = tuple[type, Id]


class KitFault(Exception):
    """The kit was about to send what it would not accept: the check cannot run."""


def _key(identity: Id) -> Key:
    return type(identity), identity


class Lookout:
    """Both directions of one connection."""

    def __init__(self) -> None:
        self.sightings: list[Sighting] = []
        """Every rule that the subject's lines broke."""
        self.requests: list[tuple[str, Any]] = []
        """Every request and notification of the subject: its method and its decoded params."""
        self.answers: list[tuple[str, Any]] = []
        """The methods that the subject answered with a result, and that result."""
        self._ours: dict[Key, str] = {}
        self._theirs: dict[Key, str] = {}
        self._answered: set[Key] = set()
        self._offered_files = False

    # --- What the kit sends -------------------------------------------------------------

    def sending(self, line: bytes) -> None:
        """Look at a line of the kit's. Raises `KitFault` if it is not as it should be."""
        message = parse(line, STRICT)
        if message is None:
            return
        if isinstance(message, Malformed):
            msg = f"the kit's own line is wrong: {message.reason}"
            raise KitFault(msg)
        if message.method is not UNSET:
            self._sending_request(message, str(message.method))
            return
        method = self._theirs.pop(_key(_id(message)), "")
        if message.error is not UNSET:
            _insist(message.error, "error")
        elif method:
            _insist(message.result, schema_name(method, "result"))

    def _sending_request(self, message: Message, method: str) -> None:
        if message.id is not UNSET:
            self._ours[_key(message.id)] = method
        if method == "initialize" and message.params is not UNSET:
            offered = codec.decode_any(message.params).get("capabilities", {})
            self._offered_files = bool(offered.get("fileTransport"))
        _insist(message.params, schema_name(method, "params"))

    def odd_answer(self, identity: Id) -> None:
        """The kit answered a call of the subject in a spelling of the field, on purpose."""
        self._theirs.pop(_key(identity), None)

    def deliberate(self, identity: Id, method: str) -> None:
        """The kit sent something wrong on purpose; an answer under `identity` may come."""
        self._ours[_key(identity)] = method

    # --- What the subject sends -----------------------------------------------------------

    def received(self, line: bytes) -> tuple[Message | Malformed | None, list[Sighting]]:
        """Look at a line of the subject's: what it is, and which rules it breaks."""
        notes = Notes(line)
        if len(line) - line.endswith(b"\n") > MAX_LINE:
            notes.broken("WIRE-011", f"the line has {len(line):,} bytes")
        bare = line.removeprefix(BOM)
        if len(bare) < len(line):
            notes.broken("WIRE-009", "a byte order mark stands before the line")
        message = parse(bare, notes.reader)
        if isinstance(message, Malformed):
            notes.malformed(message, bare)
        elif message is not None and message.method is not UNSET:
            self._received_request(message, str(message.method), notes)
        elif message is not None:
            self._received_answer(message, notes)
        self.sightings += notes.found
        return message, notes.found

    def _received_request(self, message: Message, spelled: str, notes: Notes) -> None:
        method = canonical_name(spelled)
        if spelled == SHORT_NAME:
            method = PROGRESS
            notes.tolerated("CORE-008", f"{method} is spelled {spelled}")
        elif method != spelled:
            notes.tolerated("STOR-006", f"{method} is spelled {spelled}")
        params: Any = None if message.params is UNSET else codec.decode_any(message.params)
        self.requests.append((method, params))
        if message.id is not UNSET:
            key = _key(message.id)
            if key in self._theirs:
                notes.broken("WIRE-015", f"a request with id {message.id!r} is still open")
            self._theirs[key] = method
        notes.params(method, message.params)

    def _received_answer(self, message: Message, notes: Notes) -> None:
        identity = _id(message)
        method = self._ours.pop(_key(identity), None)
        if method is None and not (identity is None and message.error is not UNSET):
            method = self._unexpected(identity, notes)
        self._answered.add(_key(identity))
        if message.error is not UNSET:
            notes.error(message.error)
        elif message.pointer is not UNSET:
            if not self._offered_files:
                notes.broken("WIRE-020", "a file pointer, and the host did not offer fileTransport")
        elif method is not None and message.result is not UNSET:
            self.answers.append((method, codec.decode_any(message.result)))
            notes.result(method, message.result)

    def _unexpected(self, identity: Id, notes: Notes) -> str | None:
        """An answer under no open id: the request that it means in another JSON type (R-13)."""
        if _key(identity) in self._answered:
            notes.broken("WIRE-014", f"a second answer under id {identity!r}")
            return None
        for key, method in self._ours.items():
            if not isinstance(identity, bool) and str(key[1]) == _plain(identity):
                notes.tolerated("WIRE-007", f"the answer to id {key[1]!r} came as {identity!r}")
                del self._ours[key]
                return method
        notes.broken("WIRE-016", f"no request with id {identity!r} is open")
        return None

    def by_file(self, method: str, result: Raw) -> list[Sighting]:
        """Look at a result that came by file (R-12)."""
        notes = Notes()
        self.answers.append((method, codec.decode_any(result)))
        notes.result(method, result)
        self.sightings += notes.found
        return notes.found

    def too_long(self, size: int) -> None:
        """A line was longer than the kit reads."""
        self.sightings.append(Sighting("WIRE-011", f"a line has more than {size:,} bytes"))

    def ended_within(self, line: bytes) -> None:
        """The stream ended within a line."""
        notes = Notes(line)
        notes.tolerated("WIRE-008", f"{line[:60]!r} has no LF")
        self.sightings += notes.found

    @property
    def unanswered(self) -> list[str]:
        """The methods of the kit's requests that the subject has not answered."""
        return list(self._ours.values())


def _insist(raw: Any, name: str) -> None:
    found = schemas.faults(codec.decode_any(raw), name) if isinstance(raw, Raw) else []
    if found:
        msg = f"the kit's own line breaks the schema {name}: {found[0]}"
        raise KitFault(msg)


def _id(message: Message) -> Id:
    return None if message.id is UNSET else message.id


def _plain(identity: Id) -> str:
    if isinstance(identity, float) and identity.is_integer():
        return str(int(identity))
    return str(identity)
