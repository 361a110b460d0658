"""Every method: who calls it, with what, what unlocks it, how long it may take, how it fails.

`METHODS` is the table that peers, gate, SDK and documentation read; a look-up is
one dict access. The structs and their checks are the chapters' own.
"""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Raw, Struct

from executa_protocol import capabilities as caps
from executa_protocol import limits
from executa_protocol.capabilities import Need
from executa_protocol.manifest import Manifest
from executa_protocol.methods import (
    agent,
    agent_results,
    core,
    failures,
    files,
    invoke,
    progress,
    sampling,
    storage,
)
from executa_protocol.methods.common import Empty
from executa_protocol.methods.extensions import EXTENSIONS
from executa_protocol.methods.info import MethodInfo, ReadParams


def _core(
    name: str,
    params: type[Struct] | None,
    result: Any,
    timeout: float | None,
    *,
    read: ReadParams | None = None,
    errors: tuple[str, ...] = (),
) -> MethodInfo:
    return MethodInfo(
        name=name,
        direction="host_to_plugin",
        chapter="core",
        params=params,
        result=result,
        read=read,
        timeout=timeout,
        errors=("METHOD_NOT_FOUND", "INTERNAL_ERROR", *errors),
    )


def _agent(
    name: str,
    params: type[Struct],
    result: Any,
    read: ReadParams,
    *,
    need: Need = caps.AGENT,
    grant: Literal["sampling", "agent"] = "agent",
    timeout: float = limits.AGENT_OTHER_TIMEOUT,
    errors: tuple[str, ...] = failures.AGENT_SESSION,
) -> MethodInfo:
    return MethodInfo(
        name=f"agent/{name}",
        direction="plugin_to_host",
        chapter="agent",
        params=params,
        result=result,
        read=read,
        negotiation="agent",
        need=need,
        grant=grant,
        token="sampling",  # noqa: S106 - the kind of a token
        timeout=timeout,
        refusal="AGENT_NOT_GRANTED",
        errors=errors,
    )


def _storage(
    name: str,
    params: type[Struct],
    result: Any,
    read: ReadParams,
    errors: tuple[str, ...] = failures.STORAGE,
) -> MethodInfo:
    is_file = name.startswith("files/")
    return MethodInfo(
        name=name,
        direction="plugin_to_host",
        chapter="storage",
        params=params,
        result=result,
        read=read,
        negotiation="storage",
        need=caps.FILES if is_file else caps.KV,
        grant="files" if is_file else "storage",
        token="storage",  # noqa: S106 - the kind of a token
        timeout=limits.FILES_TIMEOUT if is_file else limits.STORAGE_TIMEOUT,
        refusal="STORAGE_NOT_GRANTED",
        invalid="STORAGE_INVALID_REQUEST",
        errors=errors,
    )


_ROWS: Final = (
    _core("initialize", core.InitializeParams, core.InitializeResult, limits.INITIALIZE_TIMEOUT),
    _core("describe", None, Manifest, limits.DESCRIBE_TIMEOUT),
    _core(
        "invoke",
        invoke.InvokeParams,
        invoke.InvokeResult,
        limits.INVOKE_TIMEOUT,
        read=invoke.read_invoke,
        errors=("INVALID_PARAMS", "INVOKE_CANCELLED", "RESULT_TOO_LARGE"),
    ),
    _core("health", None, core.HealthResult, limits.HEALTH_TIMEOUT),
    _core("shutdown", None, Empty, limits.STOP_GRACE),
    MethodInfo(
        name="executa/cancel",
        direction="host_to_plugin",
        chapter="core",
        kind="notification",
        params=core.CancelParams,
        read=core.read_cancel,
        negotiation="cancellation",
    ),
    MethodInfo(
        name=progress.METHOD,
        direction="plugin_to_host",
        chapter="core",
        kind="notification",
        params=progress.ProgressParams,
        read=progress.read_progress,
        negotiation="progress",
    ),
    MethodInfo(
        name="sampling/createMessage",
        direction="plugin_to_host",
        chapter="sampling",
        params=sampling.SamplingParams,
        result=sampling.SamplingResult,
        read=sampling.read_sampling,
        negotiation="sampling",
        need=caps.SAMPLE,
        grant="sampling",
        token="sampling",  # noqa: S106 - the kind of a token
        timeout=limits.SAMPLING_TIMEOUT,
        refusal="SAMPLING_NOT_NEGOTIATED",
        invalid="SAMPLING_INVALID_REQUEST",
        errors=failures.SAMPLING,
    ),
    _agent(
        "complete",
        agent.CompleteParams,
        sampling.SamplingResult,
        agent.read_complete,
        need=caps.SAMPLE,
        grant="sampling",
        timeout=limits.SAMPLING_TIMEOUT,
        errors=(*failures.AGENT, *failures.BUDGET),
    ),
    _agent(
        "session.create",
        agent.AgentSessionCreateParams,
        agent_results.AgentSessionCreateResult,
        agent.read_create,
        timeout=limits.AGENT_CREATE_TIMEOUT,
        errors=(
            *failures.AGENT,
            "AGENT_INVALID_SUBMODE",
            "AGENT_FIXED_REQUIRES_CLIENT_ID",
            "AGENT_TOOL_NOT_GRANTED",
        ),
    ),
    _agent(
        "session.run",
        agent.AgentSessionRunParams,
        agent_results.RunResult,
        agent.read_run,
        timeout=limits.AGENT_RUN_TIMEOUT,
        errors=failures.AGENT_RUN,
    ),
    _agent(
        "session.cancel",
        agent.AgentSessionCancelParams,
        agent_results.CancelRunResult,
        agent.read_cancel_run,
    ),
    _agent("session.history", agent.AgentSessionHistoryParams, list[Raw], agent.read_history),
    _agent(
        "session.delete",
        agent.AgentSessionDeleteParams,
        agent_results.AgentSessionDeleteResult,
        agent.read_delete,
        errors=("AGENT_INVALID_UUID", *failures.AGENT),
    ),
    _agent(
        "session.list",
        agent.AgentSessionListParams,
        agent_results.AgentSessionListResult,
        agent.read_list,
        errors=failures.AGENT,
    ),
    _agent(
        "session.refresh",
        agent.AgentSessionRefreshParams,
        agent_results.AgentSessionRefreshResult,
        agent.read_refresh,
    ),
    _storage("storage/get", storage.StorageGetParams, storage.StorageGetResult, storage.read_get),
    _storage(
        "storage/set",
        storage.StorageSetParams,
        storage.StorageSetResult,
        storage.read_set,
        failures.STORAGE_WRITE,
    ),
    _storage(
        "storage/delete",
        storage.StorageDeleteParams,
        storage.DeleteResult,
        storage.read_storage_delete,
        (*failures.STORAGE, "STORAGE_PRECONDITION_FAILED"),
    ),
    _storage(
        "storage/list",
        storage.StorageListParams,
        storage.StorageListResult,
        storage.read_storage_list,
    ),
    _storage(
        "files/upload_begin",
        files.UploadBeginParams,
        files.UploadBeginResult,
        files.read_upload_begin,
        failures.STORAGE_WRITE,
    ),
    _storage(
        "files/upload_complete",
        files.UploadCompleteParams,
        files.UploadCompleteResult,
        files.read_upload_complete,
        (*failures.STORAGE_WRITE, "STORAGE_NOT_FOUND", "STORAGE_PENDING_UPLOAD"),
    ),
    _storage(
        "files/download_url",
        files.DownloadUrlParams,
        files.DownloadUrlResult,
        files.read_download_url,
        (*failures.STORAGE, "STORAGE_NOT_FOUND"),
    ),
    _storage("files/list", files.FilesListParams, files.FilesListResult, files.read_files_list),
    _storage(
        "files/delete",
        files.FilesDeleteParams,
        storage.DeleteResult,
        files.read_files_delete,
        (*failures.STORAGE, "STORAGE_PRECONDITION_FAILED"),
    ),
    *(
        MethodInfo(
            name=name,
            direction="plugin_to_host",
            chapter=chapter,
            need=need,
            errors=("UNMAPPED_METHOD",),
            served=False,
        )
        for name, chapter, need in EXTENSIONS
    ),
)

METHODS: Final = MappingProxyType({row.name: row for row in _ROWS})
"""Every method by its name on the wire."""


def unlocks(declared: Iterable[str], method: str, *, strict: bool = False) -> tuple[str, ...]:
    """The capability strings that `method` still needs; empty when it is unlocked.

    Raises `KeyError` for a method that is not in `METHODS`.
    """
    return METHODS[method].missing(declared, strict=strict)
