"""The client of the host's API: async, typed, with retries where they are safe."""

from executa_host.client.client import Client
from executa_host.client.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ServerFailed,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from executa_host.client.shapes import Opened, Resumed, Submitted

__all__ = [
    "ApiError",
    "Client",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "NotFound",
    "Opened",
    "Resumed",
    "ServerFailed",
    "Submitted",
    "Unauthenticated",
    "Unavailable",
    "Unreachable",
]
