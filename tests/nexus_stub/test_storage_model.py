"""The key-value store against the simplest model of it: a dict, and times to live."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import Raw

from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.quota import Quota
from executa_nexus_stub.storage import KeyValueStore, Partition
from executa_protocol import codec
from executa_protocol.methods.storage import (
    StorageDeleteParams,
    StorageGetParams,
    StorageListParams,
    StorageSetParams,
)
from executa_protocol.nexus import NexusError

PARTITIONS: list[Partition] = [
    ("user", "ada"),
    ("tool", "ada", "t1"),
    ("tool", "ada", "t2"),
    ("app", "ada", "t1"),
    ("user", "bob"),
]
ROOMY = 10**9

partitions = st.sampled_from(PARTITIONS)
keys = st.sampled_from(["a", "a/1", "a/2", "a/10", "ab", "b", "b/\u00e9", "b/\U0001f600", "c"])
values = st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.just([1, {"a": 2}])


def pages(store: KeyValueStore, partition: Partition, prefix: str, limit: int) -> list[str]:
    """The keys of every page of a listing."""
    found: list[str] = []
    params = StorageListParams(prefix=prefix, limit=limit)
    while True:
        page = store.list(partition, params)
        assert len(page.items) <= limit
        found += [item.key for item in page.items]
        if page.next_cursor is None:
            return found
        params = StorageListParams(prefix=prefix, limit=limit, cursor=page.next_cursor)


class KeyValueMachine(RuleBasedStateMachine):
    """Sets, deletes, conditions and the passing of time, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.quota = Quota(lambda _: ROOMY)
        self.store = KeyValueStore(self.clock, self.quota)
        self.model: dict[Partition, dict[str, tuple[Any, str, float | None]]] = {
            name: {} for name in PARTITIONS
        }
        self.etags: set[str] = set()

    @rule(partition=partitions, key=keys, value=values, ttl=st.none() | st.integers(1, 100))
    def set(self, partition: Partition, key: str, value: Any, ttl: int | None) -> None:
        params = StorageSetParams(key=key, value=Raw(codec.encode(value)))
        if ttl is not None:
            params.ttl_seconds = ttl
        result = self.store.set(partition, params)
        assert result.etag not in self.etags
        self.etags.add(result.etag)
        until = None if ttl is None else self.clock.now() + ttl
        self.model[partition][key] = (value, result.etag, until)

    @rule(partition=partitions, key=keys, value=values, other=partitions, right=st.booleans())
    def set_if_match(
        self, partition: Partition, key: str, value: Any, other: Partition, right: bool
    ) -> None:
        known = self.model[partition].get(key)
        foreign = self.model[other].get(key)
        etag = known[1] if right and known else foreign[1] if foreign else "no-such-etag"
        params = StorageSetParams(key=key, value=Raw(codec.encode(value)), if_match=etag)
        fits = known is not None and known[1] == etag
        if not fits:
            with pytest.raises(NexusError, match="if_match"):
                self.store.set(partition, params)
        else:
            self.model[partition][key] = (value, self.store.set(partition, params).etag, None)

    @rule(partition=partitions, key=keys)
    def delete(self, partition: Partition, key: str) -> None:
        result = self.store.delete(partition, StorageDeleteParams(key=key))
        assert result.deleted is (self.model[partition].pop(key, None) is not None)

    @rule(partition=partitions, key=keys)
    def get(self, partition: Partition, key: str) -> None:
        result = self.store.get(partition, StorageGetParams(key=key))
        known = self.model[partition].get(key)
        assert result.exists is (known is not None)
        assert codec.decode_any(result.value) == (known[0] if known else None)
        assert result.etag == (known[1] if known else None)

    @rule(
        partition=partitions,
        prefix=st.sampled_from(["", "a", "a/", "a/1", "b/", "zz"]),
        limit=st.integers(1, 4),
    )
    def list(self, partition: Partition, prefix: str, limit: int) -> None:
        expected = sorted(key for key in self.model[partition] if key.startswith(prefix))
        assert pages(self.store, partition, prefix, limit) == expected

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)
        now = self.clock.now()
        for rows in self.model.values():
            for key in [k for k, (_, _, until) in rows.items() if until and until <= now]:
                del rows[key]

    @precondition(lambda self: not any(self.model.values()))
    @invariant()
    def nothing_stored_costs_nothing(self) -> None:
        for partition in PARTITIONS:
            pages(self.store, partition, "", 100)  # takes away what has expired
        assert self.quota.used("ada") == self.quota.used("bob") == 0


KeyValueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestKeyValueStore = KeyValueMachine.TestCase


@settings(deadline=None)
@given(
    before=st.sets(st.integers(0, 99), min_size=5),
    added=st.sets(st.integers(0, 99)),
    limit=st.integers(1, 7),
)
def test_a_listing_neither_skips_nor_repeats_while_keys_are_added(
    before: set[int], added: set[int], limit: int
) -> None:
    store = KeyValueStore(ManualClock(), Quota(lambda _: ROOMY))
    partition = PARTITIONS[0]

    def put(number: int) -> None:
        store.set(partition, StorageSetParams(key=f"k/{number:02}", value=Raw(b"1")))

    for number in before:
        put(number)
    first = store.list(partition, StorageListParams(prefix="k/", limit=limit))
    for number in added:
        put(number)
    rest: list[str] = []
    cursor = first.next_cursor
    while cursor is not None:
        page = store.list(partition, StorageListParams(prefix="k/", limit=limit, cursor=cursor))
        rest += [item.key for item in page.items]
        cursor = page.next_cursor

    seen = [item.key for item in first.items] + rest
    assert seen == sorted(set(seen))
    assert {f"k/{number:02}" for number in before} <= set(seen)
