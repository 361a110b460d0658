"""The rigs of the host's and the API's tests, for attacks on them."""

from tests.host.conftest import make_rig, rig

__all__ = ["make_rig", "rig"]
