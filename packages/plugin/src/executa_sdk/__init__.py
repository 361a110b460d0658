"""Executa plugins in Python: tools from plain functions, and clients for the host's services.

Names are loaded when they are first used, so that a plugin pays for what it uses.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from executa_protocol.errors import (
        AgentError,
        CallCancelled,
        CallTimeout,
        ConnectionLost,
        EmbeddingsError,
        ExecutaError,
        ImageError,
        RpcError,
        SamplingError,
        StorageError,
        UploadError,
        UsageError,
    )
    from executa_sdk.agent import (
        METHOD_AGENT_COMPLETE,
        METHOD_AGENT_SESSION_CANCEL,
        METHOD_AGENT_SESSION_CREATE,
        METHOD_AGENT_SESSION_DELETE,
        METHOD_AGENT_SESSION_HISTORY,
        METHOD_AGENT_SESSION_LIST,
        METHOD_AGENT_SESSION_REFRESH,
        METHOD_AGENT_SESSION_RUN,
    )
    from executa_sdk.binding import (
        InvokeContext,
        attach_invoke_context,
        bind_invoke,
        get_current_invoke_id,
    )
    from executa_sdk.clients.agent import AgentRun, AgentSession, AgentSessionClient
    from executa_sdk.clients.embeddings import EmbeddingsClient
    from executa_sdk.clients.files import FilesClient
    from executa_sdk.clients.image import ImageClient
    from executa_sdk.clients.sampling import Completion, SamplingClient
    from executa_sdk.clients.storage import StorageClient, make_response_router
    from executa_sdk.clients.upload import HostUploadClient
    from executa_sdk.context import Context, current_context
    from executa_sdk.embeddings import METHOD_EMBEDDINGS_CREATE
    from executa_sdk.errors import ToolError
    from executa_sdk.host_upload import METHOD_HOST_UPLOAD_FILE
    from executa_sdk.image import METHOD_IMAGE_EDIT, METHOD_IMAGE_GENERATE
    from executa_sdk.plugin import Plugin
    from executa_sdk.progress import METHOD_EXECUTA_PROGRESS, emit_progress
    from executa_sdk.sampling import (
        METHOD_INITIALIZE,
        METHOD_SAMPLING_CREATE_MESSAGE,
        METHOD_SHUTDOWN,
        PROTOCOL_VERSION_V1,
        PROTOCOL_VERSION_V2,
    )
    from executa_sdk.storage import (
        METHOD_FILES_DELETE,
        METHOD_FILES_DOWNLOAD_URL,
        METHOD_FILES_LIST,
        METHOD_FILES_UPLOAD_BEGIN,
        METHOD_FILES_UPLOAD_COMPLETE,
        METHOD_STORAGE_DELETE,
        METHOD_STORAGE_GET,
        METHOD_STORAGE_LIST,
        METHOD_STORAGE_SET,
    )
    from executa_sdk.stores import Entry
    from executa_sdk.sync_context import SyncContext

__all__ = [
    "METHOD_AGENT_COMPLETE",
    "METHOD_AGENT_SESSION_CANCEL",
    "METHOD_AGENT_SESSION_CREATE",
    "METHOD_AGENT_SESSION_DELETE",
    "METHOD_AGENT_SESSION_HISTORY",
    "METHOD_AGENT_SESSION_LIST",
    "METHOD_AGENT_SESSION_REFRESH",
    "METHOD_AGENT_SESSION_RUN",
    "METHOD_EMBEDDINGS_CREATE",
    "METHOD_EXECUTA_PROGRESS",
    "METHOD_FILES_DELETE",
    "METHOD_FILES_DOWNLOAD_URL",
    "METHOD_FILES_LIST",
    "METHOD_FILES_UPLOAD_BEGIN",
    "METHOD_FILES_UPLOAD_COMPLETE",
    "METHOD_HOST_UPLOAD_FILE",
    "METHOD_IMAGE_EDIT",
    "METHOD_IMAGE_GENERATE",
    "METHOD_INITIALIZE",
    "METHOD_SAMPLING_CREATE_MESSAGE",
    "METHOD_SHUTDOWN",
    "METHOD_STORAGE_DELETE",
    "METHOD_STORAGE_GET",
    "METHOD_STORAGE_LIST",
    "METHOD_STORAGE_SET",
    "PROTOCOL_VERSION_V1",
    "PROTOCOL_VERSION_V2",
    "AgentError",
    "AgentRun",
    "AgentSession",
    "AgentSessionClient",
    "CallCancelled",
    "CallTimeout",
    "Completion",
    "ConnectionLost",
    "Context",
    "EmbeddingsClient",
    "EmbeddingsError",
    "Entry",
    "ExecutaError",
    "FilesClient",
    "HostUploadClient",
    "ImageClient",
    "ImageError",
    "InvokeContext",
    "Plugin",
    "RpcError",
    "SamplingClient",
    "SamplingError",
    "StorageClient",
    "StorageError",
    "SyncContext",
    "ToolError",
    "UploadError",
    "UsageError",
    "attach_invoke_context",
    "bind_invoke",
    "current_context",
    "emit_progress",
    "get_current_invoke_id",
    "make_response_router",
]

# Where each name lives; a test holds this against the imports above, which type checkers read.
_HOMES = {
    "executa_protocol.errors": (
        "AgentError CallCancelled CallTimeout ConnectionLost EmbeddingsError ExecutaError "
        "ImageError RpcError SamplingError StorageError UploadError UsageError"
    ),
    "executa_sdk.agent": (
        "METHOD_AGENT_COMPLETE METHOD_AGENT_SESSION_CANCEL METHOD_AGENT_SESSION_CREATE "
        "METHOD_AGENT_SESSION_DELETE METHOD_AGENT_SESSION_HISTORY "
        "METHOD_AGENT_SESSION_LIST METHOD_AGENT_SESSION_REFRESH METHOD_AGENT_SESSION_RUN"
    ),
    "executa_sdk.binding": "InvokeContext attach_invoke_context bind_invoke get_current_invoke_id",
    "executa_sdk.clients.agent": "AgentRun AgentSession AgentSessionClient",
    "executa_sdk.clients.embeddings": "EmbeddingsClient",
    "executa_sdk.clients.files": "FilesClient",
    "executa_sdk.clients.image": "ImageClient",
    "executa_sdk.clients.sampling": "Completion SamplingClient",
    "executa_sdk.clients.storage": "StorageClient make_response_router",
    "executa_sdk.clients.upload": "HostUploadClient",
    "executa_sdk.context": "Context current_context",
    "executa_sdk.embeddings": "METHOD_EMBEDDINGS_CREATE",
    "executa_sdk.errors": "ToolError",
    "executa_sdk.host_upload": "METHOD_HOST_UPLOAD_FILE",
    "executa_sdk.image": "METHOD_IMAGE_EDIT METHOD_IMAGE_GENERATE",
    "executa_sdk.plugin": "Plugin",
    "executa_sdk.progress": "METHOD_EXECUTA_PROGRESS emit_progress",
    "executa_sdk.sampling": (
        "METHOD_INITIALIZE METHOD_SAMPLING_CREATE_MESSAGE METHOD_SHUTDOWN "
        "PROTOCOL_VERSION_V1 PROTOCOL_VERSION_V2"
    ),
    "executa_sdk.storage": (
        "METHOD_FILES_DELETE METHOD_FILES_DOWNLOAD_URL METHOD_FILES_LIST "
        "METHOD_FILES_UPLOAD_BEGIN METHOD_FILES_UPLOAD_COMPLETE METHOD_STORAGE_DELETE "
        "METHOD_STORAGE_GET METHOD_STORAGE_LIST METHOD_STORAGE_SET"
    ),
    "executa_sdk.stores": "Entry",
    "executa_sdk.sync_context": "SyncContext",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # or type checkers would believe that every name is here

    def __getattr__(name: str) -> Any:
        home = _HOME.get(name)
        if home is None:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value = getattr(import_module(home), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOME})
