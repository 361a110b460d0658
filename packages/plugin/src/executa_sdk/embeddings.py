"""The embeddings chapter under the field's names; `clients.embeddings` is what they mean."""

from typing import Final

from executa_protocol.errors import EmbeddingsError
from executa_sdk.clients.embeddings import EmbeddingsClient

__all__ = [
    "EMBED_ERR_INVALID_REQUEST",
    "EMBED_ERR_MAX_TOKENS_EXCEEDED",
    "EMBED_ERR_NOT_GRANTED",
    "EMBED_ERR_NOT_NEGOTIATED",
    "EMBED_ERR_PROVIDER_ERROR",
    "EMBED_ERR_QUOTA_EXCEEDED",
    "EMBED_ERR_TIMEOUT",
    "EMBED_ERR_USER_DENIED",
    "METHOD_EMBEDDINGS_CREATE",
    "EmbeddingsClient",
    "EmbeddingsError",
]

METHOD_EMBEDDINGS_CREATE: Final = "embeddings/create"

EMBED_ERR_NOT_GRANTED: Final = -32501
EMBED_ERR_QUOTA_EXCEEDED: Final = -32502
EMBED_ERR_PROVIDER_ERROR: Final = -32503
EMBED_ERR_INVALID_REQUEST: Final = -32504
EMBED_ERR_TIMEOUT: Final = -32505
EMBED_ERR_MAX_TOKENS_EXCEEDED: Final = -32506
EMBED_ERR_NOT_NEGOTIATED: Final = -32507
EMBED_ERR_USER_DENIED: Final = -32508
