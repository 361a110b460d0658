"""One reverse call on its way through the host, and how it can be turned down."""

from typing import Any

from msgspec import Raw, Struct, UnsetType

from executa_host.connection import Connection
from executa_host.invocation import ActiveInvoke
from executa_protocol.codes import ErrorObject
from executa_protocol.envelope import Id
from executa_protocol.errors import ExecutaError
from executa_protocol.gate import Refusal
from executa_protocol.methods.info import MethodInfo


class ReverseCall(Struct, kw_only=True, eq=False):
    """A call that has passed negotiated, manifest and correlate.

    `name` is the method as the plugin spelled it, `number` counts the calls of its invoke.
    `raw` are its params as they came, `params` the method's struct once read. `tokens` is
    what it used.
    """

    connection: Connection
    identity: Id
    name: str
    method: MethodInfo
    raw: Raw | UnsetType
    invoke: ActiveInvoke
    number: int
    started: float
    params: Any = None
    tokens: int = 0


class Refused(ExecutaError):
    """A step of the chain said no."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Failed(ExecutaError):
    """The call was let through and failed: `error` answers it."""

    def __init__(self, error: ErrorObject) -> None:
        super().__init__(error.message)
        self.error = error


def insist(refusal: Refusal | None) -> None:
    """Raise `Refused` if a step refused."""
    if refusal is not None:
        raise Refused(refusal)
