"""Who may call what, and why not: the chain of R-22 as pure functions.

A reverse call passes negotiated, manifest, correlate, grant, token, scope, budget
and nexus, in this order, and the first step that says no answers it. Correlation,
budgets and nexus have state and live in the host; the other steps are here, so that
host, test host and conformance kit refuse the same calls with the same words.
"""

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

from executa_protocol.codes import ErrorObject, by_symbol, wire_error
from executa_protocol.handshake import Negotiated
from executa_protocol.methods.info import MethodInfo
from executa_protocol.nexus import Grants, Token

Step = Literal["negotiated", "manifest", "correlate", "grant", "token", "scope", "budget", "nexus"]

STEPS: Final[tuple[Step, ...]] = (
    "negotiated",
    "manifest",
    "correlate",
    "grant",
    "token",
    "scope",
    "budget",
    "nexus",
)
"""The chain, in its order."""


class Refusal(Struct, frozen=True):
    """A step said no.

    `row` names the error row that answers. `needs` holds the exact strings that would
    unlock the step; both go into ``error.data.missing``.
    """

    step: Step
    row: str
    message: str
    needs: tuple[str, ...] = ()

    @property
    def error(self) -> ErrorObject:
        """The answer: the chapter's code, ``errorCode``, and ``missing`` for the author."""
        missing = {"step": self.step, "needs": list(self.needs)}
        return wire_error(
            self.row, f"{by_symbol(self.row).symbol}: {self.message}", missing=missing
        )


class Verdict(Struct, frozen=True):
    """What one step says of a call: passed, refused, or open until the call is made."""

    step: Step
    passed: bool | None
    detail: str = ""
    refusal: Refusal | None = None


def check_negotiated(
    method: MethodInfo, negotiated: Negotiated, *, strict: bool = False
) -> Refusal | None:
    """Reverse calls need v2; in strict mode sampling also needs its key (R-21)."""
    if not negotiated.is_v2:
        text = f"{method.name} needs protocol 2.0; the handshake ended with {negotiated.version}"
        return Refusal("negotiated", method.refusal, text, ("protocolVersion: 2.0",))
    key = method.negotiation
    if strict and method.chapter == "sampling" and key and key not in negotiated.keys:
        text = f"the answer to initialize does not list capabilities.{key}"
        return Refusal("negotiated", method.refusal, text, (f"capabilities.{key}",))
    return None


def check_manifest(
    method: MethodInfo, declared: Iterable[str], *, strict: bool = False
) -> Refusal | None:
    """The manifest must declare what unlocks the method (seed lifecycle, Manifest declarations)."""
    missing = method.missing(declared, strict=strict)
    if not missing:
        return None
    text = f"the manifest's host_capabilities lack {' and '.join(missing)}"
    return Refusal("manifest", method.refusal, text, missing)


_GRANT_ROWS: Final = {
    "sampling": "SAMPLING_NOT_GRANTED",
    "agent": "AGENT_NOT_GRANTED",
    "storage": "STORAGE_NOT_GRANTED",
}


def check_grant(method: MethodInfo, grants: Grants) -> Refusal | None:
    """The user must have allowed it."""
    if method.grant is None or getattr(grants, method.grant):
        return None
    text = f"the user has not granted {method.grant} to this plugin"
    row = _GRANT_ROWS.get(method.chapter, method.refusal)
    return Refusal("grant", row, text, (f"grant: {method.grant}",))


def check_token(method: MethodInfo, token: Token | None, now: float) -> Refusal | None:
    """Nexus must have given a token for this invoke, and it must not have expired.

    `now` is epoch seconds.
    """
    if method.token is None:
        return None
    needs = (f"{method.token}_token",)
    row = _GRANT_ROWS.get(method.chapter, method.refusal)
    if token is None:
        return Refusal("token", row, f"nexus gave no {method.token} token for this invoke", needs)
    if token.expires_at <= now:
        row = row if method.chapter == "storage" else "APP_SESSION_TOKEN_EXPIRED"
        return Refusal("token", row, f"the {method.token} token has expired", needs)
    return None


def check_scope(method: MethodInfo, scope: str | None, token: Token | None) -> Refusal | None:
    """A storage call stays inside the scopes of its token (R-29)."""
    if method.chapter != "storage" or scope is None or token is None:
        return None
    if scope in token.scopes:
        return None
    allowed = ", ".join(token.scopes) or "none"
    text = f"scope {scope[:40]!r} is not in the storage token's scopes ({allowed})"
    return Refusal("scope", "STORAGE_FORBIDDEN_SCOPE", text, (f"scope: {scope[:40]}",))


def explain(
    method: MethodInfo,
    negotiated: Negotiated,
    declared: Iterable[str],
    *,
    grants: Grants | None = None,
    strict: bool = False,
) -> list[Verdict]:
    """Walk the chain without calling: one verdict a step, in order.

    Steps that only a call can decide are open. `grants` of None leaves the user's
    grant open too.
    """
    grant = None if grants is None else check_grant(method, grants)
    decided = {
        "negotiated": check_negotiated(method, negotiated, strict=strict),
        "manifest": check_manifest(method, declared, strict=strict),
        **({} if grants is None else {"grant": grant}),
    }
    verdicts: list[Verdict] = []
    for step in STEPS:
        if step not in decided:
            verdicts.append(Verdict(step, None, _OPEN.get(step, "decided when the call is made")))
            continue
        refusal = decided[step]
        detail = "" if refusal is None else refusal.message
        verdicts.append(Verdict(step, refusal is None, detail, refusal))
    return verdicts


_OPEN: Final = {
    "correlate": "the call must name an invoke that is active (params.context.invoke_id)",
    "grant": "nexus tells the user's grant when an invoke begins",
    "token": "nexus gives the token when an invoke begins",
    "scope": "storage calls stay inside the scopes of their token",
    "budget": "calls and tokens of the root invoke must be left",
    "nexus": "nexus must serve the call",
}
