"""What an action carries beside its input, as options of `executa actions submit`."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter
from msgspec import UNSET

from executa_host.actions.records import Callback, Context, Transaction
from executa_host.cli import exits
from executa_host.cli.arguments import read_arguments


@Parameter(name="*")
@dataclass(frozen=True)
class Carried:
    """Members of a `Submission` that most actions do without."""

    timeout: Annotated[float | None, Parameter(help="Seconds for one attempt.")] = None
    expires: Annotated[float | None, Parameter(help="Seconds for the whole, waiting included.")] = (
        None
    )
    delegation: Annotated[
        tuple[str, ...],
        Parameter(help="On whose behalf: a chain of principals that ends with the key's own."),
    ] = ()
    context: Annotated[
        str,
        Parameter(
            help="JSON or @FILE with any of conversation, memory, identity, compliance and "
            "observability."
        ),
    ] = ""
    callback: Annotated[str, Parameter(help="The URL that the outcome is posted to.")] = ""
    callback_approvals: Annotated[
        bool, Parameter(negative="", help="Post there, too, when an approval is waited for.")
    ] = False
    transaction: Annotated[str, Parameter(help="The transaction that it is part of.")] = ""

    def members(self) -> dict[str, Any]:
        """Those that are given. Raises `exits.Stop`."""
        return {
            "timeout_ms": _milliseconds(self.timeout),
            "expires_in_ms": _milliseconds(self.expires),
            "delegation": self.delegation,
            "context": _context(self.context) if self.context else UNSET,
            "callback": Callback(self.callback, self.callback_approvals)
            if self.callback
            else UNSET,
            "transaction": Transaction(self.transaction) if self.transaction else UNSET,
        }


NOTHING: Final = Carried()


def _milliseconds(seconds: float | None) -> Any:
    return UNSET if seconds is None else round(seconds * 1000)


def _context(text: str) -> Context:
    given = read_arguments(text, "--context")
    unknown = sorted(given.keys() - set(Context.__struct_fields__))
    if unknown:
        known = ", ".join(Context.__struct_fields__)
        raise exits.Stop(f"--context.{unknown[0]}: unknown; there are {known}", exits.USAGE)
    try:
        return msgspec.json.decode(msgspec.json.encode(given), type=Context)
    except msgspec.ValidationError as fault:
        raise exits.Stop(f"--context: {fault}", exits.USAGE) from None
