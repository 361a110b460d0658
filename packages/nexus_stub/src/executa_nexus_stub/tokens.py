"""Tokens: minted, verified, rotated and revoked.

Owns signing keys and the claims of every token: JWT, HS256, the key's id in the header.
*Stated* (seed lifecycle, Per-invoke context injection): the audiences
``executa-sampling`` and ``aps-storage``, 600 s of life, and the binding to user, tool
and invoke. *Observed*: audience ``aps-llm`` and type ``anna_app_session`` for agent
sessions. *Assumed*: how the claims are spelled. A token counts only while its *group*,
an invoke or an agent session, is alive; who ends groups is not this module's business.
Refusals say why and never repeat the token.
"""

import base64
import hmac
import secrets
from collections.abc import Mapping
from typing import Any, Final

import jwt
import msgspec
from msgspec import Struct

from executa_nexus_stub.clock import Clock
from executa_nexus_stub.refusals import refused
from executa_protocol.limits import KIB, TOKEN_LEEWAY, TOKEN_TTL
from executa_protocol.nexus import NexusError, Token

SAMPLING: Final = "executa-sampling"
STORAGE: Final = "aps-storage"
SESSION: Final = "aps-llm"
SESSION_TYPE: Final = "anna_app_session"

ISSUER: Final = "executa-nexus-stub"
_ALGORITHM: Final = "HS256"
_MAX_TOKEN: Final = 8 * KIB
_KEY_BYTES: Final = 32

_NOT_GRANTED: Final = {
    SAMPLING: "SAMPLING_NOT_GRANTED",
    STORAGE: "STORAGE_NOT_GRANTED",
    SESSION: "AGENT_NOT_GRANTED",
}


class Binding(Struct, frozen=True):
    """Whom a token speaks for: user, plugin (by `executa_tool_id` and name) and invoke."""

    user_id: str
    executa_tool_id: str
    tool_invoke_id: str
    plugin: str


class Claims(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a token says. Times are epoch seconds; `group` ends the token with it."""

    iss: str
    aud: str
    jti: str
    iat: float
    exp: float
    user_id: str
    executa_tool_id: str
    tool_invoke_id: str
    plugin_name: str = ""
    type: str = ""
    allowed_scopes: tuple[str, ...] = ()
    max_calls: int = 0
    app_id: str = ""
    app_slug: str = ""
    app_session_uuid: str = ""

    @property
    def group(self) -> str:
        """What this token lives and dies with."""
        return self.app_session_uuid or self.tool_invoke_id


class _Key(Struct, frozen=True):
    secret: bytes
    head: bytes
    verifies_until: float | None = None

    def __repr__(self) -> str:
        return "_Key(***)"


class _Minted(Struct, frozen=True):
    claims: Claims
    kid: str


class TokenAuthority:
    """Mints tokens and says what a presented one allows.

    `lookup` lets tokens of this process be recognised without verifying their
    signature, which costs more than an invoke (R-39); what they may do is the same.
    """

    def __init__(self, clock: Clock, *, ttl: float = TOKEN_TTL, lookup: bool = True) -> None:
        self._clock = clock
        self._ttl = ttl
        self._lookup = lookup
        self._keys: dict[str, _Key] = {}
        self._current = ""
        self._minted: dict[str, _Minted] = {}
        self._groups: dict[str, dict[str, str]] = {}  # group -> token id -> token
        self.rotate()

    def __repr__(self) -> str:
        return f"TokenAuthority(keys={len(self._keys)}, live={len(self._minted)})"

    @property
    def live_count(self) -> int:
        """Tokens that are minted and not yet ended with their group."""
        return len(self._minted)

    def rotate(self) -> str:
        """Sign with a new key from now on; older ones verify for 600 s and leeway (R-39)."""
        now = self._clock.now()
        until = now + TOKEN_TTL + TOKEN_LEEWAY
        self._keys = {
            kid: key if key.verifies_until is not None else _Key(key.secret, key.head, until)
            for kid, key in self._keys.items()
            if key.verifies_until is None or key.verifies_until >= now
        }
        self._current = f"k{secrets.token_hex(4)}"
        header = {"alg": _ALGORITHM, "kid": self._current, "typ": "JWT"}
        head = _base64(msgspec.json.encode(header)) + b"."
        self._keys[self._current] = _Key(secrets.token_bytes(_KEY_BYTES), head)
        return self._current

    def mint(
        self, audience: str, binding: Binding, *, ttl: float | None = None, **extra: Any
    ) -> Token:
        """A new token. `extra` are further members of `Claims`, such as `allowed_scopes`."""
        now = self._clock.now()
        claims = Claims(
            iss=ISSUER,
            aud=audience,
            jti=secrets.token_hex(8),
            iat=now,
            exp=now + (self._ttl if ttl is None else ttl),
            user_id=binding.user_id,
            executa_tool_id=binding.executa_tool_id,
            tool_invoke_id=binding.tool_invoke_id,
            plugin_name=binding.plugin,
            **extra,
        )
        value = self._signed(claims)
        self._minted[value] = _Minted(claims, self._current)
        self._groups.setdefault(claims.group, {})[claims.jti] = value
        return Token(value, claims.exp, claims.allowed_scopes)

    def _signed(self, claims: Claims) -> str:
        """The claims as a JWT. Put together here: a general encoder takes four times as long."""
        key = self._keys[self._current]
        body = key.head + _base64(msgspec.json.encode(claims))
        return (body + b"." + _base64(hmac.digest(key.secret, body, "sha256"))).decode()

    def end(self, group: str) -> None:
        """Revoke every token of an invoke or an agent session. Idempotent."""
        for value in self._groups.pop(group, {}).values():
            self._minted.pop(value, None)

    def audience(self, token: str) -> str:
        """What a token says it is for, unverified; empty if it cannot be read."""
        known = self._minted.get(token)
        return known.claims.aud if known is not None else _claimed_audience(token)

    def verify(self, token: str, audience: str, *, chapter: str = "") -> Claims:
        """The claims of a token that is good for `audience`.

        Raises `NexusError`: ``TOKEN_EXPIRED`` (401), ``REVOKED`` (410) once its group has
        ended, else the refusal of the audience's chapter, or of the row `chapter`.
        """
        row = chapter or _NOT_GRANTED[audience]
        known = self._minted.get(token) if self._lookup else None
        if known is not None and self._verifies(known.kid):
            claims = known.claims
        else:
            claims = self._decoded(token, row)
        if claims.aud != audience:
            raise _no(row, f"it is for {claims.aud!r}, not for {audience!r}", 403)
        now = self._clock.now()
        if claims.iat > now + TOKEN_LEEWAY:
            raise _no(row, "it was issued in the future")
        if now > claims.exp + TOKEN_LEEWAY:
            raise refused("APP_SESSION_TOKEN_EXPIRED", "token refused: it has expired")
        if claims.jti not in self._groups.get(claims.group, {}):
            what = "agent session" if claims.app_session_uuid else "invoke"
            raise refused("APP_SESSION_REVOKED", f"token refused: its {what} has ended")
        return claims

    def _verifies(self, kid: str) -> bool:
        key = self._keys.get(kid)
        if key is None:
            return False
        return key.verifies_until is None or self._clock.now() <= key.verifies_until

    def _decoded(self, token: str, row: str) -> Claims:
        if len(token) > _MAX_TOKEN:
            raise _no(row, "it is too long")
        try:
            header: Mapping[str, Any] = jwt.get_unverified_header(token)
            if header.get("alg") != _ALGORITHM:  # `none` among them
                raise _no(row, "its algorithm is not allowed")
            kid = header.get("kid")
            if not isinstance(kid, str) or not self._verifies(kid):
                raise _no(row, "its key is unknown or was rotated out")
            # Times and audience are checked by our own clock and with our own words.
            payload = jwt.decode(
                token,
                self._keys[kid].secret,
                algorithms=[_ALGORITHM],
                options={
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                    "verify_aud": False,
                },
            )
            return msgspec.convert(payload, Claims)
        except (jwt.PyJWTError, msgspec.ValidationError, ValueError):
            raise _no(row, "it is not one of ours") from None


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _claimed_audience(token: str) -> str:
    try:
        payload = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError):
        return ""
    audience: Any = payload.get("aud")
    return audience if isinstance(audience, str) else ""


def bound_to(claims: Claims, row: str, **expected: str) -> None:
    """Refuse a token that speaks for another user, tool or invoke than the body names."""
    for name, value in expected.items():
        if getattr(claims, name) != value:
            raise _no(row, f"it is bound to another {name}", 403)


def _no(row: str, reason: str, status: int = 401) -> NexusError:
    return refused(row, f"token refused: {reason}", status=status)
