"""The tokens and credentials that the kit gives, and the search for them where they must not be.

All of them are random and worth nothing; they carry a mark by which they are found again.
"""

import secrets
from collections.abc import Iterable
from typing import Final, Protocol

MARK: Final = "kit-secret-"


class Declares(Protocol):
    """What a plugin has declared, as far as tokens depend on it."""

    @property
    def declared(self) -> frozenset[str]:
        """Capability strings."""
        ...

    @property
    def credentials(self) -> tuple[str, ...]:
        """Names of credentials."""
        ...


class Tokens:
    """Makes them, and remembers for which invoke."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def of(self, invoke_id: str, declares: Declares) -> dict[str, object]:
        """The members of an invoke's context that its declarations unlock."""
        found: dict[str, object] = {}
        if "llm.sample" in declares.declared:
            found["sampling_token"] = self._new(invoke_id)
        if any(name.startswith("aps.") for name in declares.declared):
            found["storage_token"] = self._new(invoke_id)
        if declares.credentials:
            found["credentials"] = {name: self._new(invoke_id) for name in declares.credentials}
        return found

    def _new(self, invoke_id: str) -> str:
        value = MARK + secrets.token_urlsafe(24)
        self._owners[value] = invoke_id
        return value

    @staticmethod
    def found_in(texts: Iterable[bytes]) -> bool:
        """Whether a token stands in one of the texts."""
        mark = MARK.encode()
        return any(mark in text for text in texts)
