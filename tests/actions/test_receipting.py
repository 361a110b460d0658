"""What receipts attest is canonical as it is, and digested so."""

import pytest
from msgspec import Raw

from executa_host.actions import receipting
from executa_host.actions.operations import Attested
from executa_host.actions.records import (
    ActionState,
    Approval,
    ApprovalStatus,
    Cancellation,
    CancelOutcome,
)
from executa_protocol import canonical
from tests.actions.samples import terms

ASKED = Cancellation(
    requested_by="bea",
    requested_at_ms=0,
    reason='b\u00e9cause \u2028 "so"',
    outcome=CancelOutcome.CONFIRMED,
)
DENIED = Approval(status=ApprovalStatus.DENIED, content="c", decided_by="cy", note="no\n\t")


@pytest.mark.parametrize(
    "attested",
    [
        receipting.acceptance("t", "ana", "p.read", terms(idempotency_key="k/\u00e9\\")),
        receipting.acceptance("t", "ana", "p.read", terms(delegation=("z", "a"), redrive_of="x")),
        receipting.decision(DENIED),
        receipting.cancellation(ASKED),
        receipting.outcome(ActionState.CANCELLED, 3, Raw(b'{ "b": 1.50, "a": 2 }'), ASKED),
    ],
)
def test_what_is_attested_is_canonical_and_has_its_digest(attested: Attested) -> None:
    assert canonical.canonical(attested.text) == attested.text
    assert canonical.digest(attested.text) == attested.content
