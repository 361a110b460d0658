"""Receipts: what the host attests about an action, each bound to the one before (R-53).

A receipt's digest covers its own members and the digest of its predecessor, so that
none can be changed, left out or put in without every later one showing it. It proves
order and content to whoever kept the last digest; it is no signature. This module does
not know what is attested, only its digest.
"""

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Raw, Struct

from executa_protocol import canonical
from executa_protocol.errors import DecodeFailure

NO_PREDECESSOR: Final = "0" * 64
"""What the first receipt of an action has in place of its predecessor's digest."""


_ENCODER: Final = msgspec.json.Encoder()


class ReceiptKind(StrEnum):
    """What is attested."""

    ACCEPTANCE = "acceptance"
    APPROVAL = "approval"
    CANCELLATION = "cancellation"
    OUTCOME = "outcome"


class Receipt(Struct, frozen=True):
    """One attestation. Digests are 64 hexadecimal digits; `at_ms` is epoch milliseconds.

    `number` counts from 1 per action. `content` is the digest of what is attested,
    `previous` that of the receipt before, `digest` this receipt's own: of the JSON array
    of the six other members, in their order.
    """

    action_id: str
    number: int
    kind: ReceiptKind
    at_ms: int
    content: str
    previous: str
    digest: str


def issue(
    action_id: str, kind: ReceiptKind, attested: bytes | Raw, at_ms: int, last: Receipt | None
) -> Receipt:
    """Attest `attested`, a JSON text, after `last` (None: the first). Raises `DecodeFailure`."""
    number = 1 if last is None else last.number + 1
    previous = NO_PREDECESSOR if last is None else last.digest
    content = canonical.digest(attested)
    others = (action_id, number, kind, at_ms, content, previous)
    return Receipt(*others, digest(others))


def digest(others: tuple[str, int, str, int, str, str]) -> str:
    """A receipt's own digest: of its six other members, in their order."""
    # An array of texts and integers is canonical as it is encoded: no need to bring it there.
    encoded = _ENCODER.encode(others)
    return hashlib.sha256(encoded).hexdigest()


def check_chain(receipts: Iterable[Receipt]) -> None:
    """Check all receipts of one action, in order. Raises `DecodeFailure` at the first fault."""
    last: Receipt | None = None
    for receipt in receipts:
        number = 1 if last is None else last.number + 1
        due = (
            receipt.action_id if last is None else last.action_id,
            number,
            NO_PREDECESSOR if last is None else last.digest,
            digest(msgspec.structs.astuple(receipt)[:-1]),
        )
        if (receipt.action_id, receipt.number, receipt.previous, receipt.digest) != due:
            msg = f"receipt {number} of {due[0]} does not continue its chain"
            raise DecodeFailure(msg, path="digest")
        last = receipt
