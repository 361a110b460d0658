"""The seam between one live plugin and whoever runs it."""

from typing import TYPE_CHECKING, Protocol

from executa_protocol.envelope import Message

if TYPE_CHECKING:
    from executa_host.connection import Connection


class Owner(Protocol):
    """Who runs connections. Nothing here may block or raise."""

    def on_reverse(self, connection: "Connection", request: Message) -> None:
        """A plugin calls back."""
        ...

    def on_notification(self, connection: "Connection", notification: Message) -> None:
        """A plugin notifies."""
        ...

    def on_late(self, connection: "Connection") -> None:
        """An invoke took longer than its limit, which makes its plugin suspicious (R-24)."""
        ...

    def on_gone(self, connection: "Connection") -> None:
        """The process has ended, its pipe has been read, its calls have failed. Once."""
        ...
