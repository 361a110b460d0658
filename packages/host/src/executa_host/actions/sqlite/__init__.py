"""The embedded store: one SQLite file, through aiosqlite, no server to run."""

from executa_host.actions.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
