"""`ImageClient`: pictures by the host's model (`image/generate`, `image/edit`).

The field's extension; a host that does not serve it answers -32601 ``UNMAPPED_METHOD``.
"""

from typing import Final

from executa_protocol.errors import ImageError
from executa_sdk.clients.base import Client, Object

IMAGE_TIMEOUT: Final = 180.0
"""Seconds: models that start cold take minutes for a picture."""


class ImageClient(Client):
    """Asks the host for pictures. Failures are `ImageError`.

    Results are ``{"images": [{"url", "mimeType"}], "model", "quota_used"}``; the URLs live
    about 30 minutes.
    """

    DEFAULT_TIMEOUT = IMAGE_TIMEOUT

    error = ImageError
    disabled_code = -32107
    timeout_code = -32105

    async def generate(
        self,
        *,
        prompt: str,
        n: int = 1,
        size: str | None = None,
        reference_image_urls: list[str] | None = None,
        model_preferences: Object | None = None,
        metadata: Object | None = None,
        timeout: float = IMAGE_TIMEOUT,
    ) -> Object:
        """`n` pictures (1 to 8) from words. `size` is such as ``1024x1024``."""
        params: Object = {
            "prompt": prompt,
            "n": n,
            "size": size,
            "reference_image_urls": reference_image_urls,
            "modelPreferences": model_preferences,
            "metadata": metadata,
        }
        return await self._call_object("image/generate", params, timeout)

    async def edit(
        self,
        *,
        image_url: str,
        prompt: str,
        mask_url: str | None = None,
        n: int = 1,
        size: str | None = None,
        model_preferences: Object | None = None,
        metadata: Object | None = None,
        timeout: float = IMAGE_TIMEOUT,
    ) -> Object:
        """A picture changed by words; with a mask, only where the mask is white."""
        params: Object = {
            "image_url": image_url,
            "prompt": prompt,
            "mask_url": mask_url,
            "n": n,
            "size": size,
            "modelPreferences": model_preferences,
            "metadata": metadata,
        }
        return await self._call_object("image/edit", params, timeout)
