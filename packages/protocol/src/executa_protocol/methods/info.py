"""The row of the method table: what there is to know about one method."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec import Raw, Struct, UnsetType

from executa_protocol import capabilities as caps
from executa_protocol.capabilities import Need, TokenKind
from executa_protocol.code_table import Chapter, Row
from executa_protocol.codes import by_symbol
from executa_protocol.readings import Reader

Direction = Literal["host_to_plugin", "plugin_to_host"]
Kind = Literal["request", "notification"]
ReadParams = Callable[[bytes | Raw | UnsetType, Reader], Any]


class MethodInfo(Struct, frozen=True, kw_only=True):
    """What there is to know about one method.

    `params` and `result` are its structs, None where there is nothing to say. `read`
    turns raw params into that struct. `negotiation` is the capability key of the
    handshake, `need` what the manifest must declare, `token` what the host adds for
    nexus. `timeout` is seconds. `refusal` is the row that steps before the grant
    answer with, `invalid` the row for bad params, `errors` every row it may answer.
    A method that is not `served` is answered with ``UNMAPPED_METHOD`` (R-04).
    """

    name: str
    direction: Direction
    chapter: Literal["core"] | Chapter
    kind: Kind = "request"
    params: type[Struct] | None = None
    result: Any = None
    read: ReadParams | None = None
    negotiation: str | None = None
    need: Need = ()
    grant: Literal["sampling", "agent", "storage", "files"] | None = None
    token: TokenKind | None = None
    timeout: float | None = None
    refusal: str = "UNMAPPED_METHOD"
    invalid: str = "INVALID_PARAMS"
    errors: tuple[str, ...] = ()
    served: bool = True

    @property
    def refusal_row(self) -> Row:
        """The row for a call that is not negotiated or not declared (R-22)."""
        return by_symbol(self.refusal)

    def missing(self, declared: Iterable[str], *, strict: bool = False) -> tuple[str, ...]:
        """The capability strings that would have to be declared too."""
        return caps.missing(declared, self.need, strict=strict)
