"""Which addresses a callback may go to: public ones, over TLS, unless configured otherwise.

Owns the rules for URLs and for the addresses that a name resolves to. A name is checked
when it is submitted as far as it can be, and each address again when it is connected to:
what a name resolves to may change in between.
"""

import ipaddress
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from executa_protocol.errors import UsageError

_PORTS = {"https": 443, "http": 80}


def check_url(url: str, allow: Sequence[str]) -> SplitResult:
    """Take a callback's URL apart. Raises `UsageError` for what is never called."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as fault:
        raise UsageError(f"not a URL: {fault}") from fault
    host = parts.hostname or ""
    if parts.scheme not in _PORTS or not host:
        raise UsageError("expected an https URL with a host")
    if parts.username is not None or parts.password is not None:
        raise UsageError("a callback's URL carries no credentials; calls are signed")
    if parts.fragment:
        raise UsageError("a callback's URL has no fragment")
    port = port or _PORTS[parts.scheme]
    address = _address(host)
    allowed = is_allowed(host, port, address, allow)
    if parts.scheme != "https" and not allowed:
        raise UsageError(f"{host} is called over https only")
    if address is not None and not allowed and not is_public(address):
        raise UsageError(f"{host} is no public address")
    if address is None and not allowed and _is_local_name(host):
        raise UsageError(f"{host} is no public name")
    return parts


def is_public(address: "ipaddress.IPv4Address | ipaddress.IPv6Address") -> bool:
    """Whether an address is one of the Internet's, and no detour to one that is not."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address.teredo is not None:
            inner = address.teredo[1]
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast


def is_allowed(
    host: str,
    port: int,
    address: "ipaddress.IPv4Address | ipaddress.IPv6Address | None",
    allow: Sequence[str],
) -> bool:
    """Whether the configuration names this host, this host and port, or its network."""
    host = host.lower().rstrip(".")
    for entry in allow:
        name = entry.lower()
        if name in (host, f"{host}:{port}", f"[{host}]:{port}"):
            return True
        if address is not None:
            try:
                if address in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                continue  # a name, not a network
    return False


def check_allowed(entry: str) -> None:
    """Raise `UsageError` for an entry that `is_allowed` could never find: it is no host, no
    ``host:port`` and no network."""
    try:
        ipaddress.ip_network(entry, strict=False)
    except ValueError:
        pass
    else:
        return
    try:
        parts = urlsplit(f"//{entry}")
        plain = (parts.hostname or "") and parts.netloc == entry and parts.port != 0
    except ValueError:
        plain = False
    if not plain or "@" in entry or any(c.isspace() for c in entry):
        raise UsageError("expected a host, host:port or a network such as 10.0.0.0/8")


def _address(host: str) -> "ipaddress.IPv4Address | ipaddress.IPv6Address | None":
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    # 127.1, 0x7f000001 and 2130706433 are addresses to resolvers, and to nobody else.
    last = host.rstrip(".").rpartition(".")[2]
    if last.isdigit() or last.lower().startswith("0x"):
        raise UsageError(f"{host} is neither a name nor an address in the usual form")
    return None


def _is_local_name(host: str) -> bool:
    name = host.lower().rstrip(".")
    local = ("localhost", "local", "internal", "home.arpa", "localdomain")
    return "." not in name or name.endswith(tuple(f".{each}" for each in local))


_NAT64 = ipaddress.ip_network("64:ff9b::/96")
