"""A faithful stand-in for nexus: tokens, models, agent runs and storage at home."""

from executa_nexus_stub.config import StubConfig
from executa_nexus_stub.core import NexusStub, create

__all__ = ["NexusStub", "StubConfig", "create"]
