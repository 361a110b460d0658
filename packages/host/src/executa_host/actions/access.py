"""Who may do and see what. Pure: callers, records and settings in, a refusal or nothing out."""

from collections.abc import Iterable
from itertools import pairwise

from executa_host.actions.faults import Code, Forbidden, Gone, NotFound
from executa_host.actions.operations import Stored
from executa_host.actions.records import Approval, SessionRecord
from executa_host.actions.requests import Caller, Scope
from executa_host.actions.settings import Delegation
from executa_host.actions.store import Marker, Viewer


def require(caller: Caller, scope: Scope) -> None:
    """Raise `Forbidden` unless the caller's key has `scope`."""
    if scope not in caller.scopes and Scope.ADMIN not in caller.scopes:
        msg = f"this key lacks the scope {scope}"
        raise Forbidden(Code.FORBIDDEN, msg, data={"missing": str(scope)})


def viewer(caller: Caller) -> Viewer:
    """What of a listing a caller sees."""
    if Scope.ADMIN in caller.scopes:
        return Viewer()
    if Scope.TENANT in caller.scopes:
        return Viewer(tenant=caller.tenant)
    return Viewer(
        tenant=caller.tenant,
        principal=caller.principal,
        approvals=Scope.APPROVE in caller.scopes,
    )


def _reaches(caller: Caller, tenant: str, principals: Iterable[str]) -> bool:
    if Scope.ADMIN in caller.scopes:
        return True
    if caller.tenant != tenant:
        return False
    return Scope.TENANT in caller.scopes or caller.principal in principals


def sees_action(caller: Caller, stored: Stored) -> bool:
    """Whether an action is the caller's to see."""
    record = stored.record
    if _reaches(caller, record.tenant, (record.principal, record.subject, *stored.parties)):
        return True
    asked = caller.tenant == record.tenant and Scope.APPROVE in caller.scopes
    return asked and isinstance(record.approval, Approval)


def visible(caller: Caller, found: Stored | Marker | None, action_id: str) -> Stored:
    """The action, if it is there and the caller's to see.

    Raises `NotFound` UNKNOWN_ACTION, `Gone` REMOVED.
    """
    if isinstance(found, Stored) and sees_action(caller, found):
        return found
    if isinstance(found, Marker) and _reaches(caller, found.tenant, found.principals):
        raise Gone(Code.REMOVED, f"retention removed {action_id}")
    raise NotFound(Code.UNKNOWN_ACTION, f"there is no action {action_id[:64]!r}")


def visible_session(
    caller: Caller, found: SessionRecord | Marker | None, session_id: str
) -> SessionRecord:
    """The session, likewise. Raises `NotFound` UNKNOWN_SESSION, `Gone` REMOVED."""
    if isinstance(found, SessionRecord):
        if _reaches(caller, found.tenant, (found.initiator, found.responder)):
            return found
    elif found is not None and _reaches(caller, found.tenant, found.principals):
        raise Gone(Code.REMOVED, f"retention removed {session_id}")
    raise NotFound(Code.UNKNOWN_SESSION, f"there is no session {session_id[:64]!r}")


def require_party(caller: Caller, session: SessionRecord) -> None:
    """Raise `Forbidden` unless the caller is one of the session's two principals."""
    if caller.principal not in (session.initiator, session.responder):
        msg = f"{caller.principal} is no party of session {session.session_id}"
        raise Forbidden(Code.FORBIDDEN, msg)


def require_approver(
    caller: Caller, approvers: tuple[str, ...], principal: str, *, own_approvals: bool
) -> None:
    """Raise `Forbidden` unless the caller may decide about what `principal` submitted."""
    if Scope.APPROVE not in caller.scopes and Scope.ADMIN not in caller.scopes:
        msg = f"this key lacks the scope {Scope.APPROVE}"
        raise Forbidden(Code.APPROVAL_NOT_YOURS, msg, data={"missing": str(Scope.APPROVE)})
    if approvers and caller.principal not in approvers:
        msg = f"{caller.principal} is none of this capability's approvers"
        raise Forbidden(Code.APPROVAL_NOT_YOURS, msg)
    if not own_approvals and caller.principal == principal:
        msg = f"{caller.principal} submitted this action; somebody else must decide"
        raise Forbidden(Code.APPROVAL_NOT_YOURS, msg)


def delegated(
    caller: Caller, chain: tuple[str, ...], capability: str, known: tuple[Delegation, ...]
) -> tuple[str, str]:
    """On whose behalf a chain acts, and whose plugins run for it.

    Every link must be allowed to act for the one before it. Raises `Forbidden`
    DELEGATION_REFUSED.
    """
    if not chain:
        return caller.principal, caller.user_id
    if chain[-1] != caller.principal:
        msg = f"a delegation chain ends with its caller, {caller.principal}"
        raise Forbidden(Code.DELEGATION_REFUSED, msg)
    user_id = caller.user_id
    for place, (subject, actor) in enumerate(pairwise(chain)):
        grant = _grant(caller.tenant, subject, actor, capability, known)
        if grant is None:
            msg = f"{actor} may not act for {subject} in {capability}"
            raise Forbidden(Code.DELEGATION_REFUSED, msg, path=f"$.delegation[{place + 1}]")
        if place == 0:
            user_id = grant.user_id or user_id
    return chain[0], user_id


def _grant(
    tenant: str, subject: str, actor: str, capability: str, known: tuple[Delegation, ...]
) -> Delegation | None:
    plugin = capability.partition(".")[0]
    names = {capability, f"{plugin}.*", "*"}
    for grant in known:
        parties = (grant.tenant, grant.subject, grant.actor)
        if parties == (tenant, subject, actor) and names & set(grant.capabilities):
            return grant
    return None
