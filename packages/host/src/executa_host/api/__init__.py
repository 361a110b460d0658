"""The host's API for its clients: durable actions and sessions over HTTP."""

from executa_host.api.app import make_app
from executa_host.api.server import ApiServer

__all__ = ["ApiServer", "make_app"]
