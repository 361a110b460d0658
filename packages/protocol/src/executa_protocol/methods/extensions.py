"""Names that the field has and the seeds do not: methods we do not serve, and older spellings.

A known method that is not served is answered with ``UNMAPPED_METHOD`` (R-04). An
older name of a served one is read as that one in tolerant mode. This module holds
names only.
"""

from typing import Final

from executa_protocol.capabilities import Need
from executa_protocol.code_table import Chapter
from executa_protocol.methods.progress import METHOD as PROGRESS
from executa_protocol.methods.progress import SHORT_NAME
from executa_protocol.readings import TOLERANT, Reader

EXTENSIONS: Final[tuple[tuple[str, Chapter, Need], ...]] = (
    ("image/generate", "image", (("llm.image",),)),
    ("image/edit", "image", (("llm.image.edit",),)),
    ("host/uploadFile", "upload", (("host.upload",),)),
    ("embeddings/create", "embeddings", (("llm.embed",),)),
    ("web/search", "web", (("web.search",),)),
    ("web/fetch", "web", (("web.fetch",),)),
    ("web/image_search", "web", (("web.image_search",),)),
    ("web/image_fetch", "web", (("web.image_fetch",),)),
    ("credentials/listAccounts", "credentials", ()),
    ("credentials/getToken", "credentials", ()),
    ("video/generate", "video", (("llm.video",),)),
    ("video/get_job", "video", (("llm.video",),)),
    ("video/cancel_job", "video", (("llm.video",),)),
    ("audio/speak", "audio", (("llm.audio.speak",),)),
    ("storage/quota_status", "storage", (("aps.kv",),)),
)
"""Method, chapter and need of every reverse method that is known and not served."""

OLD_STORAGE_NAMES: Final = {
    "storage/kv_get": "storage/get",
    "storage/kv_set": "storage/set",
    "storage/kv_delete": "storage/delete",
    "storage/kv_list": "storage/list",
    "storage/files_upload_init": "files/upload_begin",
    "storage/files_finalize": "files/upload_complete",
    "storage/files_download_url": "files/download_url",
    "storage/files_list": "files/list",
    "storage/files_delete": "files/delete",
}
"""The older storage dialect. Its params have the same members and a `storage_token` beside
them, which is ignored: the host has its own. Its get answers `found` beside `exists`."""


def canonical_name(method: str, reader: Reader = TOLERANT) -> str:
    """The name that the seeds have for a method; any other name comes back as it is.

    Reports an older name, or raises `StrictRefusal` through `reader`.
    """
    current = OLD_STORAGE_NAMES.get(method)
    if current is not None:
        reader.tolerate("STOR-006", f"{method} is read as {current}")
        return current
    if method == SHORT_NAME:
        reader.tolerate("CORE-008", f"{method} is read as {PROGRESS}")
        return PROGRESS
    return method


def wants_found(method: str) -> bool:
    """Whether the answer to this older name carries `found`, a copy of `exists`."""
    return method == "storage/kv_get"
