"""`EmbeddingsClient`: vectors for texts (`embeddings/create`).

The field's extension; a host that does not serve it answers -32601 ``UNMAPPED_METHOD``.
"""

from collections.abc import Sequence
from typing import Final

from executa_protocol.errors import EmbeddingsError
from executa_sdk.clients.base import Client, Object

EMBEDDINGS_TIMEOUT: Final = 30.0
"""Seconds for one batch."""


class EmbeddingsClient(Client):
    """Asks the host for vectors. Failures are `EmbeddingsError`."""

    error = EmbeddingsError
    disabled_code = -32507
    timeout_code = -32505

    async def create(
        self,
        *,
        input: str | Sequence[str],  # noqa: A002 - the field's name
        model: str | None = None,
        timeout: float = EMBEDDINGS_TIMEOUT,
    ) -> Object:
        """``{"data": [{"index", "embedding"}], "model", "usage"}`` for 1 to 64 texts.

        `model` is an alias of the host, ``anna-managed-v1`` by default. Raises
        `EmbeddingsError`, and ValueError if there is no text.
        """
        texts = [input] if isinstance(input, str) else list(input)
        if not texts or not all(texts):
            msg = "input must be a text or some texts, none of them empty"
            raise ValueError(msg)
        params: Object = {"input": texts, "model": model}
        return await self._call_object("embeddings/create", params, timeout)
