"""A host's clock that stands still until a test moves it."""

from executa_nexus_stub.clock import ManualClock


class HostClock(ManualClock):
    """Both of a host's times, as set. Serves the stub too, so that both agree."""

    def monotonic(self) -> float:
        """The same seconds."""
        return self.now()
