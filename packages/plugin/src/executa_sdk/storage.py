"""The storage chapter under the field's names; `clients.storage` and `clients.files` are them."""

from typing import Final

from executa_protocol import codes
from executa_protocol.errors import StorageError
from executa_sdk.clients.files import FilesClient
from executa_sdk.clients.storage import StorageClient, make_response_router

__all__ = [
    "METHOD_FILES_DELETE",
    "METHOD_FILES_DOWNLOAD_URL",
    "METHOD_FILES_LIST",
    "METHOD_FILES_UPLOAD_BEGIN",
    "METHOD_FILES_UPLOAD_COMPLETE",
    "METHOD_STORAGE_DELETE",
    "METHOD_STORAGE_GET",
    "METHOD_STORAGE_LIST",
    "METHOD_STORAGE_SET",
    "STORAGE_ERR_INVALID_PATH",
    "STORAGE_ERR_INVALID_REQUEST",
    "STORAGE_ERR_NOT_FOUND",
    "STORAGE_ERR_NOT_GRANTED",
    "STORAGE_ERR_PRECONDITION_FAILED",
    "STORAGE_ERR_QUOTA_EXCEEDED",
    "STORAGE_ERR_RATE_LIMITED",
    "STORAGE_ERR_TIMEOUT",
    "STORAGE_ERR_UPSTREAM",
    "STORAGE_ERR_VALUE_TOO_LARGE",
    "FilesClient",
    "StorageClient",
    "StorageError",
    "make_response_router",
]

METHOD_STORAGE_GET: Final = "storage/get"
METHOD_STORAGE_SET: Final = "storage/set"
METHOD_STORAGE_DELETE: Final = "storage/delete"
METHOD_STORAGE_LIST: Final = "storage/list"
METHOD_FILES_UPLOAD_BEGIN: Final = "files/upload_begin"
METHOD_FILES_UPLOAD_COMPLETE: Final = "files/upload_complete"
METHOD_FILES_DOWNLOAD_URL: Final = "files/download_url"
METHOD_FILES_LIST: Final = "files/list"
METHOD_FILES_DELETE: Final = "files/delete"

STORAGE_ERR_NOT_GRANTED: Final = codes.STORAGE_NOT_GRANTED
STORAGE_ERR_NOT_FOUND: Final = codes.STORAGE_NOT_FOUND
STORAGE_ERR_PRECONDITION_FAILED: Final = codes.STORAGE_PRECONDITION_FAILED
STORAGE_ERR_QUOTA_EXCEEDED: Final = codes.STORAGE_QUOTA_EXCEEDED
STORAGE_ERR_VALUE_TOO_LARGE: Final = codes.STORAGE_VALUE_TOO_LARGE
STORAGE_ERR_RATE_LIMITED: Final = codes.STORAGE_RATE_LIMITED
STORAGE_ERR_INVALID_PATH: Final = codes.STORAGE_INVALID_PATH
STORAGE_ERR_INVALID_REQUEST: Final = codes.STORAGE_INVALID_REQUEST
STORAGE_ERR_UPSTREAM: Final = codes.STORAGE_UPSTREAM_ERROR
STORAGE_ERR_TIMEOUT: Final = codes.STORAGE_TIMEOUT
