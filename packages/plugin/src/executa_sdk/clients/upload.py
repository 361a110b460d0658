"""`HostUploadClient`: a file handed to the host for a while (`host/uploadFile`).

The field's extension; a host that does not serve it answers -32601 ``UNMAPPED_METHOD``.
"""

import base64
from typing import Final

from executa_protocol.errors import UploadError
from executa_protocol.limits import MIB
from executa_sdk.clients.base import Client, Object

UPLOAD_TIMEOUT: Final = 120.0
"""Seconds for one step of an upload."""

MAX_INLINE_BYTES: Final = 8 * MIB
"""Largest inline upload: its base64 must fit into one line."""


class HostUploadClient(Client):
    """Uploads inline, or in two steps around a PUT of one's own. Failures are `UploadError`.

    Results are ``{"download_url", "r2_key", "size_bytes", "expires_at"}``, and their other
    spellings where the host has those.
    """

    DEFAULT_TIMEOUT = UPLOAD_TIMEOUT
    MAX_INLINE_BYTES = MAX_INLINE_BYTES

    error = UploadError
    disabled_code = -32210
    timeout_code = -32208

    async def upload_inline(
        self,
        *,
        filename: str,
        mime_type: str,
        content: bytes,
        purpose: str | None = None,
        metadata: Object | None = None,
        timeout: float = UPLOAD_TIMEOUT,
    ) -> Object:
        """Upload at most 8 MiB in one call; more raises `UploadError` (-32204) here."""
        if len(content) > MAX_INLINE_BYTES:
            text = f"{len(content):,} bytes, at most {MAX_INLINE_BYTES:,} inline; use negotiate"
            raise UploadError(-32204, text, {"errorCode": "TOO_LARGE"})
        params: Object = {
            "mode": "inline",
            "filename": filename,
            "mime_type": mime_type,
            "content_b64": base64.b64encode(content).decode("ascii"),
            "purpose": purpose,
            "metadata": metadata,
        }
        return await self._call_object("host/uploadFile", params, timeout)

    async def negotiate(
        self,
        *,
        filename: str,
        mime_type: str,
        size_bytes: int,
        purpose: str | None = None,
        metadata: Object | None = None,
        timeout: float = UPLOAD_TIMEOUT,
    ) -> Object:
        """``{"put_url", "headers", "r2_key"}``: where to PUT; then `confirm`."""
        params: Object = {
            "mode": "negotiate",
            "filename": filename,
            "mime_type": mime_type,
            "expected_bytes": size_bytes,
            "size_bytes": size_bytes,  # hosts read either
            "purpose": purpose,
            "metadata": metadata,
        }
        return await self._call_object("host/uploadFile", params, timeout)

    async def confirm(self, *, r2_key: str, timeout: float = UPLOAD_TIMEOUT) -> Object:
        """Say that the PUT has ended. Raises `UploadError` (-32212) if nothing landed."""
        params: Object = {"mode": "confirm", "r2_key": r2_key}
        return await self._call_object("host/uploadFile", params, timeout)
