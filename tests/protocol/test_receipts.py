"""Receipts and their chain."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol import canonical
from executa_protocol.errors import DecodeFailure
from executa_protocol.receipts import NO_PREDECESSOR, Receipt, ReceiptKind, check_chain, issue


def chain(*attested: bytes) -> list[Receipt]:
    """Receipts of one action, one a second."""
    receipts: list[Receipt] = []
    kinds = list(ReceiptKind)
    for number, content in enumerate(attested):
        last = receipts[-1] if receipts else None
        receipts.append(issue("act_1", kinds[number % 4], content, 1000 * number, last))
    return receipts


THREE = chain(b'{"input":1}', b'{"approved":true}', b'{"state":"completed"}')


def test_the_first_receipt_has_no_predecessor_and_the_others_name_theirs() -> None:
    assert [receipt.number for receipt in THREE] == [1, 2, 3]
    assert THREE[0].previous == NO_PREDECESSOR
    assert [receipt.previous for receipt in THREE[1:]] == [r.digest for r in THREE[:2]]


def test_a_receipt_attests_the_value_and_not_its_spelling() -> None:
    spaced = issue("act_1", ReceiptKind.ACCEPTANCE, b'{ "input": 1 }', 0, None)
    assert spaced == THREE[0]


def test_a_receipts_digest_can_be_computed_by_anybody() -> None:
    members = msgspec.json.encode(list(msgspec.structs.astuple(THREE[1])[:-1]))
    assert THREE[1].digest == canonical.digest(members)


def test_a_whole_chain_and_an_empty_one_hold() -> None:
    check_chain(THREE)
    check_chain([])
    check_chain(msgspec.json.decode(msgspec.json.encode(THREE), type=list[Receipt]))


CHANGES = {
    "action_id": "act_2",
    "number": 9,
    "kind": ReceiptKind.OUTCOME,
    "at_ms": 5,
    "content": "0" * 64,
    "previous": "1" * 64,
    "digest": "2" * 64,
}


@pytest.mark.parametrize("member", CHANGES)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_no_member_of_any_receipt_can_be_changed(member: str, place: int) -> None:
    forged = [*THREE]
    forged[place] = msgspec.structs.replace(THREE[place], **{member: CHANGES[member]})
    with pytest.raises(DecodeFailure, match="does not continue"):
        check_chain(forged)


@pytest.mark.parametrize("left", [(1, 2), (0, 2), (1, 0), (0, 0), (0, 2, 1)])
def test_no_receipt_can_be_left_out_doubled_or_moved(left: tuple[int, ...]) -> None:
    with pytest.raises(DecodeFailure):
        check_chain([THREE[place] for place in left])


def test_a_receipt_of_another_action_does_not_continue_the_chain() -> None:
    foreign = issue("act_2", ReceiptKind.OUTCOME, b"{}", 0, THREE[0])
    with pytest.raises(DecodeFailure):
        check_chain([THREE[0], foreign])


def test_what_is_no_json_cannot_be_attested() -> None:
    with pytest.raises(DecodeFailure):
        issue("act_1", ReceiptKind.OUTCOME, b"{", 0, None)


@given(st.lists(st.dictionaries(st.text(), st.integers() | st.text()), max_size=6))
def test_every_chain_that_is_issued_holds(contents: list[dict[str, int | str]]) -> None:
    check_chain(chain(*(msgspec.json.encode(content) for content in contents)))
