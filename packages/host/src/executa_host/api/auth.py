"""From a bearer key to whom it speaks for, and whether that one may use an endpoint.

Owns the header `Authorization` and the check of scopes at the door. A key in a URL is not
looked at. What may be seen of a record is the engine's to decide.
"""

from collections.abc import Collection

from aiohttp import web

from executa_host.actions.faults import Code
from executa_host.actions.requests import Scope
from executa_host.api.refusal import ApiCode, Refusal
from executa_host.keys import Key, KeyFile

_CHALLENGE = 'Bearer realm="executa"'


def identify(request: web.Request, keys: KeyFile) -> Key:
    """The key of a request. Raises `Refusal` (401) and `KeysUnreadable`."""
    shown = request.headers.getall("Authorization", [])
    kind, _, text = shown[0].partition(" ") if len(shown) == 1 else ("", "", "")
    if kind.lower() != "bearer" or not text.strip():
        raise _unauthenticated("expected one header: Authorization: Bearer KEY", _CHALLENGE)
    key = keys.find(text.strip())
    if key is None:
        challenge = f'{_CHALLENGE}, error="invalid_token"'
        raise _unauthenticated("the key is unknown, expired or revoked", challenge)
    return key


def check_scope(scopes: Collection[Scope], scope: Scope) -> None:
    """Raise `Refusal` (403) unless a key with `scopes` has this one, or may do everything."""
    if scope not in scopes and Scope.ADMIN not in scopes:
        challenge = f'{_CHALLENGE}, error="insufficient_scope", scope="{scope}"'
        raise Refusal(
            403,
            Code.FORBIDDEN,
            f"the key lacks the scope {scope}",
            headers={"WWW-Authenticate": challenge},
        )


def _unauthenticated(message: str, challenge: str) -> Refusal:
    return Refusal(401, ApiCode.UNAUTHENTICATED, message, headers={"WWW-Authenticate": challenge})
