"""Which URLs and addresses a callback may go to."""

import ipaddress

import pytest

from executa_host.actions.addresses import check_url, is_public
from executa_protocol.errors import UsageError


@pytest.mark.parametrize(
    "url",
    [
        "https://hook.example/path?x=1",
        "https://hook.example:8443/",
        "https://93.184.216.34/",
        "https://[2606:2800:220:1:248:1893:25c8:1946]/",
        "https://HOOK.example./",
        "https://xn--bcher-kva.example/",
    ],
)
def test_public_targets_over_tls_are_fine(url: str) -> None:
    check_url(url, ())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hook.example",
        "//hook.example",
        "ftp://hook.example/",
        "file:///etc/passwd",
        "https://",
        "https:///x",
        "https://hook.example:99999/",
        "https://hook.example:x/",
        "https://[::1/",
        "http://hook.example/",
        "https://user@hook.example/",
        "https://user:pass@hook.example/",
        "https://hook.example/#x",
        "https://localhost/",
        "https://LOCALHOST./",
        "https://printer/",
        "https://db.internal/",
        "https://nas.local/",
        "https://a.localhost/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://10.1.2.3/",
        "https://172.16.0.1/",
        "https://192.168.1.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://100.64.0.1/",
        "https://0.0.0.0/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://[::1]/",
        "https://[::]/",
        "https://[fe80::1]/",
        "https://[fc00::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::a00:1]/",
        "https://[2002:a00:1::1]/",
    ],
)
def test_everything_else_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        check_url(url, ())


@pytest.mark.parametrize(
    ("url", "allow"),
    [
        ("http://localhost:8000/x", "localhost"),
        ("http://localhost:8000/x", "localhost:8000"),
        ("http://127.0.0.1:8000/x", "127.0.0.0/8"),
        ("https://10.1.2.3/x", "10.0.0.0/8"),
        ("http://[::1]:80/x", "[::1]:80"),
        ("http://db.internal/x", "DB.internal"),
    ],
)
def test_what_the_configuration_names_is_fine(url: str, allow: str) -> None:
    check_url(url, (allow,))


@pytest.mark.parametrize(
    ("url", "allow"),
    [
        ("http://localhost:8001/x", "localhost:8000"),
        ("https://11.1.2.3.internal/x", "11.0.0.0/8"),
        ("https://10.1.2.3/x", "10.0.0.0/16"),
        ("http://evil-localhost/x", "localhost"),
    ],
)
def test_and_nothing_beside_it(url: str, allow: str) -> None:
    with pytest.raises(UsageError):
        check_url(url, (allow,))


def test_an_address_inside_another_counts() -> None:
    assert is_public(ipaddress.ip_address("93.184.216.34"))
    assert is_public(ipaddress.ip_address("::ffff:93.184.216.34"))
    assert not is_public(ipaddress.ip_address("::ffff:192.168.0.1"))
    assert not is_public(ipaddress.ip_address("2001:0:0:0:0:0:f5ff:fffe"))  # Teredo of 10.0.0.1
