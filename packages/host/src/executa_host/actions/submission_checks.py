"""The parts of a submission, each held against its rule: the refusal names the path."""

from typing import Any, Final, cast

from msgspec import UNSET, Raw, UnsetType

from executa_host.actions.addresses import check_url
from executa_host.actions.contracts import Capability
from executa_host.actions.faults import Code, Invalid
from executa_host.actions.limits import CONTEXT_BYTES, DELEGATION_LINKS, INPUT_BYTES
from executa_host.actions.records import Callback, Context
from executa_host.actions.requests import Submission
from executa_host.actions.settings import CallbackSettings
from executa_host.actions.validation import check_json, check_name, check_text
from executa_protocol import canonical, codec
from executa_protocol.arguments import validate_arguments
from executa_protocol.errors import DecodeFailure, UsageError
from executa_protocol.limits import IDEMPOTENCY_KEY_CHARS, MAX_TOOL_TIMEOUT

TIMEOUT_MAX: Final = int(MAX_TOOL_TIMEOUT * 1000)
"""The longest time-out of an attempt, in milliseconds."""


def check_names(submission: Submission) -> None:
    """Keys, ids and links are what a store can hold."""
    key, chain = submission.idempotency_key, submission.delegation
    if len(chain) > DELEGATION_LINKS:
        msg = (
            f"a delegation chain has at most {DELEGATION_LINKS} members, and this one {len(chain)}"
        )
        raise Invalid(Code.INVALID_REQUEST, msg, path="$.delegation")
    path = "$.idempotency_key"
    try:
        check_text("idempotency_key", key, IDEMPOTENCY_KEY_CHARS)
        path = "$.session_id"
        check_text("session_id", submission.session_id)
        for place, link in enumerate(chain):
            path = f"$.delegation[{place}]"
            check_name("a link", link)
        if submission.transaction is not UNSET:
            path = "$.transaction.transaction_id"
            check_name("transaction_id", submission.transaction.transaction_id)
            path = "$.transaction.data"
            _check_object(submission.transaction.data)
    except UsageError as fault:
        raise Invalid(Code.INVALID_REQUEST, str(fault), path=path) from fault


def _check_object(raw: Raw | UnsetType) -> int:
    if isinstance(raw, UnsetType):
        return 0
    check_json("it", raw)
    if bytes(raw).lstrip()[:1] != b"{":
        raise UsageError("expected an object")
    return len(memoryview(raw))


def check_context(context: Context | UnsetType) -> None:
    """Context members are objects, and not too much of them."""
    if isinstance(context, UnsetType):
        return
    size = 0
    for name in ("conversation", "memory", "identity", "compliance"):
        try:
            size += _check_object(getattr(context, name))
        except UsageError as fault:
            path = f"$.context.{name}"
            raise Invalid(Code.INVALID_REQUEST, f"{path}: {fault}", path=path) from fault
    if not isinstance(context.observability, UnsetType):
        try:
            for name in ("traceparent", "tracestate", "baggage"):
                check_text(name, getattr(context.observability, name), 8192)
        except UsageError as fault:
            path = "$.context.observability"
            raise Invalid(Code.INVALID_REQUEST, str(fault), path=path) from fault
    if size > CONTEXT_BYTES:
        msg = f"the context has {size:,} bytes, at most {CONTEXT_BYTES:,}"
        raise Invalid(Code.INVALID_REQUEST, msg, path="$.context")


def check_input(raw: Raw, capability: Capability, *, strict: bool) -> str:
    """The digest of an input that fits."""
    size = len(memoryview(raw))
    if size > INPUT_BYTES:
        msg = f"the input has {size:,} bytes, at most {INPUT_BYTES:,}"
        raise Invalid(Code.INVALID_INPUT, msg, path="$.input")
    try:
        digest = canonical.digest(raw)
        value = codec.decode_any(raw)
    except DecodeFailure as fault:
        raise Invalid(Code.INVALID_INPUT, f"$.input: {fault}", path="$.input") from fault
    if not isinstance(value, dict):
        raise Invalid(Code.INVALID_INPUT, "$.input: expected an object", path="$.input")
    arguments = cast("dict[str, Any]", value)
    faults = validate_arguments(capability.tool, arguments, strict=strict)
    if faults:
        found = [
            {"path": "$.input" + fault.path.removeprefix("$"), "message": fault.message}
            for fault in faults
        ]
        words = "; ".join(f"{each['path']}: {each['message']}" for each in found)
        raise Invalid(Code.INVALID_INPUT, words, path=found[0]["path"], data={"faults": found})
    return digest


def check_callback(tenant: str, callback: Callback | UnsetType, settings: CallbackSettings) -> None:
    """A callback can be signed, and goes to where callbacks may go."""
    if isinstance(callback, UnsetType):
        return
    path = "$.callback.url"
    secrets = settings.secrets
    if tenant not in secrets and "*" not in secrets:
        msg = f"callbacks of tenant {tenant} cannot be signed: it has no secret"
        raise Invalid(Code.CALLBACK_REFUSED, msg, path=path)
    try:
        check_url(callback.url, settings.allow)
    except UsageError as fault:
        raise Invalid(Code.CALLBACK_REFUSED, f"{path}: {fault}", path=path) from fault


def milliseconds(path: str, value: int | UnsetType, default: int, longest: int) -> int:
    """A duration within bounds."""
    if isinstance(value, UnsetType):
        return default
    if not 1 <= value <= longest:
        msg = f"{path}: {value} is not from 1 to {longest} milliseconds"
        raise Invalid(Code.OUT_OF_RANGE, msg, path=path)
    return value
