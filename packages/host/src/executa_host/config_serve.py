"""What a host's configuration file says about its API: the table ``[serve]``.

Owns where it listens, and with which certificate. The files of a certificate are looked for
here and read when the host begins to serve.
"""

import ssl
from pathlib import Path
from typing import Final

from msgspec import Struct

from executa_host.config_reading import Table
from executa_protocol.errors import UsageError

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8717

_PORTS: Final = 2**16 - 1
_LONGEST_GRACE: Final = 86_400


class Tls(Struct, frozen=True):
    """A certificate with its chain, and its key: PEM files."""

    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """What a server needs. Raises `UsageError` for files that are no such pair."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # Without a password of its own OpenSSL would ask at the terminal.
            context.load_cert_chain(self.certificate, self.key, password=_no_password)
        except (OSError, ValueError) as fault:
            reason = getattr(fault, "reason", "") or getattr(fault, "strerror", "") or str(fault)
            msg = f"TLS with {self.certificate} and {self.key} is not possible: {reason}"
            raise UsageError(msg) from None
        return context


class ServeConfig(Struct, frozen=True, kw_only=True):
    """Where the API listens: on loopback unless `host` says otherwise. `grace`: seconds that
    running work has when the host is stopped, None for the default."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    grace: float | None = None
    tls: Tls | None = None


def read_serve(table: Table, base: Path) -> ServeConfig:
    """Read the table; faults are remembered by it. Relative paths are relative to `base`."""
    port = table.number("port", 0, _PORTS, whole=True)
    found = ServeConfig(
        host=table.text("host", DEFAULT_HOST),
        port=DEFAULT_PORT if port is None else int(port),
        grace=table.number("grace", 0, _LONGEST_GRACE),
        tls=_tls(table, base),
    )
    table.finish()
    return found


def _tls(table: Table, base: Path) -> Tls | None:
    certificate = _file(table, "tls_certificate", base)
    key = _file(table, "tls_key", base)
    for name, other in (("tls_certificate", "tls_key"), ("tls_key", "tls_certificate")):
        if name in table and other not in table:
            table.fault(other, f"expected a file beside {name}")
    return None if certificate is None or key is None else Tls(certificate, key)


def _file(table: Table, name: str, base: Path) -> Path | None:
    text = table.text(name)
    if not text:
        return None
    path = base / Path(text).expanduser()
    if not path.is_file():
        table.fault(name, f"there is no file {path}")
    return path


def _no_password() -> str:
    msg = "the key is encrypted; give one that is not, in a file that only the host can read"
    raise ValueError(msg)
