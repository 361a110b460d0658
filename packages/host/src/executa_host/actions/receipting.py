"""What receipts attest, as small JSON objects of names and digests (R-53).

An input is attested by the digest of its canonical form, a result by that of its bytes:
whoever holds them can check both. Nobody else learns their content.
"""

import hashlib
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from executa_host.actions.operations import Attested, Terms
from executa_host.actions.records import ActionState, Approval, Cancellation
from executa_protocol.receipts import ReceiptKind

_ENCODER = msgspec.json.Encoder(order="sorted")


def acceptance(tenant: str, principal: str, capability: str, terms: Terms) -> Attested:
    """That an action was accepted: whose, of what, with which input."""
    members: dict[str, Any] = {
        "capability": capability,
        "delegation": terms.delegation,
        "effect": terms.effect,
        "idempotency_key": terms.idempotency_key,
        "input": terms.input_digest,
        "mode": terms.mode,
        "principal": principal,
        "redrive_of": terms.redrive_of,
        "tenant": tenant,
    }
    return _attested(ReceiptKind.ACCEPTANCE, members)


def decision(approval: Approval) -> Attested:
    """That somebody decided, about which content."""
    members = {
        "content": approval.content,
        "decided_by": approval.decided_by,
        "note": approval.note,
        "status": approval.status,
    }
    return _attested(ReceiptKind.APPROVAL, members)


def cancellation(asked: Cancellation) -> Attested:
    """That somebody asked for its end."""
    members = {"reason": asked.reason, "requested_by": asked.requested_by}
    return _attested(ReceiptKind.CANCELLATION, members)


def outcome(
    state: ActionState, attempt: int, result: Raw, asked: Cancellation | UnsetType
) -> Attested:
    """How it ended."""
    members: dict[str, Any] = {
        "attempt": attempt,
        "result_sha256": hashlib.sha256(memoryview(result)).hexdigest(),
        "state": state,
    }
    if not isinstance(asked, UnsetType) and asked.outcome is not UNSET:
        members["cancellation"] = asked.outcome
    return _attested(ReceiptKind.OUTCOME, members)


def _attested(kind: ReceiptKind, members: dict[str, Any]) -> Attested:
    # Texts and integers in the order of their names are canonical as they are encoded.
    text = _ENCODER.encode({name: value for name, value in members.items() if value})
    return Attested(kind, text, hashlib.sha256(text).hexdigest())
