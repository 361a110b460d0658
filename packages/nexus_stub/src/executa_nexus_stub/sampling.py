"""`sampling/createMessage` behind the token: which model, which format, what it cost.

Owns the way from `SamplingParams` to a model and back, response formats and
`onUnsupported` (*observed*). Tokens, grants and the ledger are `core`'s; how a model
finds its words is the model's.
"""

from typing import Any, Literal, cast

from msgspec import UNSET

from executa_nexus_stub.clock import Clock
from executa_nexus_stub.models.base import (
    Completion,
    Format,
    Message,
    Model,
    ModelError,
    ModelRequest,
)
from executa_nexus_stub.models.catalogue import Catalogue
from executa_nexus_stub.models.schema import problem
from executa_nexus_stub.refusals import invalid, refused
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.methods.common import TextContent
from executa_protocol.methods.reading import InvalidParams
from executa_protocol.methods.response_format import JsonObjectFormat
from executa_protocol.methods.sampling import (
    FormatReport,
    SamplingMeta,
    SamplingParams,
    SamplingResult,
    Usage,
    check_sampling,
)
from executa_protocol.nexus import NexusError


class Sampling:
    """Serves one completion at a time from the catalogue."""

    def __init__(self, catalogue: Catalogue, clock: Clock) -> None:
        self._catalogue = catalogue
        self._clock = clock

    async def complete(
        self, params: SamplingParams, user_model: str, tool_id: str = ""
    ) -> SamplingResult:
        """The answer. Raises `NexusError` by the sampling chapter's codes."""
        started = self._clock.now()
        try:
            check_sampling(params)
        except InvalidParams as fault:
            raise invalid(fault) from None
        try:
            model = self._catalogue.choose(params.model_preferences, user_model)
            wanted = _requested(params)
            applied = _applied(wanted, model, params)
            request = model_request(params, applied, tool_id)
            completion = await model.complete(request)
        except ModelError as fault:
            raise provider_refusal(fault, "SAMPLING_PROVIDER_ERROR") from None
        report = _report(wanted, applied, completion, request) if wanted != "text" else UNSET
        return SamplingResult(
            content=TextContent("text", completion.text),
            model=model.info.name,
            stop_reason=completion.stop,
            usage=Usage(
                input_tokens=completion.usage.input_tokens,
                output_tokens=completion.usage.output_tokens,
                total_tokens=completion.usage.total,
            ),
            meta=SamplingMeta(
                provider=model.info.provider,
                latency_ms=round((self._clock.now() - started) * 1000, 3),
                response_format=report,
            ),
        )


def provider_refusal(fault: ModelError, row: str) -> NexusError:
    """A provider's failure as this chapter says it; 429 keeps its pause."""
    status = 429 if fault.status == 429 else 502
    return refused(row, str(fault), status=status, retry_after=fault.retry_after)


def model_request(params: SamplingParams, applied: Format, tool_id: str) -> ModelRequest:
    """The params as a model reads them."""
    schema: dict[str, Any] | None = None
    name = ""
    if applied == "json_schema":
        spec = cast("Any", params.response_format).json_schema
        schema = cast("dict[str, Any]", codec.decode_any(spec.schema))
        name = spec.name
    return ModelRequest(
        messages=tuple(Message(role=m.role, text=m.content.text) for m in params.messages),
        max_tokens=params.max_tokens,
        system=params.system_prompt or "",
        temperature=None if params.temperature is UNSET else params.temperature,
        stop=tuple(params.stop_sequences or ()),
        format=applied,
        schema=schema,
        schema_name=name,
        tool_id=tool_id,
    )


def _requested(params: SamplingParams) -> Format:
    if params.response_format is UNSET:
        return "text"
    return "json_object" if isinstance(params.response_format, JsonObjectFormat) else "json_schema"


def _applied(wanted: Format, model: Model, params: SamplingParams) -> Format:
    """The format that the model can give, as `onUnsupported` allows (*observed*)."""
    if wanted in model.info.formats:
        return wanted
    fallback: Literal["error", "json_object", "text"] = params.on_unsupported or "error"
    if fallback == "json_object" and "json_object" in model.info.formats:
        return "json_object"
    if fallback == "text":
        return "text"
    raise refused(
        "SAMPLING_UNSUPPORTED_RESPONSE_FORMAT",
        f"{model.info.name} has no {wanted}; choose another model or set onUnsupported",
    )


def _report(
    wanted: Format, applied: Format, completion: Completion, request: ModelRequest
) -> FormatReport:
    return FormatReport(
        requested=wanted,
        applied=applied,
        structured_valid=UNSET if applied == "text" else _is_valid(completion.text, request),
        downgraded=applied != wanted,
    )


def _is_valid(text: str, request: ModelRequest) -> bool:
    try:
        value = codec.decode_any(text.encode())
    except DecodeFailure:
        return False
    schema = request.schema if request.schema is not None else {"type": "object"}
    return problem(value, schema) is None
