"""The stub as a program of its own."""

import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from executa_nexus_stub.command import main, nexus, settings_of
from executa_nexus_stub.fault_text import read_faults
from executa_protocol import codec
from executa_protocol.errors import UsageError
from tests.nexus_stub.calls import opening
from tests.nexus_stub.http_client import HttpNexus


async def test_it_serves_until_it_is_told_to_stop() -> None:
    command = [sys.executable, "-m", "executa_nexus_stub", "--port", "0", "--faults", "seed=7"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220 - its first lines are all that is waited for
        assert process.stdout is not None
        where, seed = process.stdout.readline(), process.stdout.readline()
        try:
            url = where.rpartition(" ")[2].strip()
            client = HttpNexus(url)
            try:
                grant = await client.open_invoke(opening())
            except aiohttp.ClientError:  # pragma: no cover - only if it cannot listen
                pytest.fail(where)
            finally:
                await client.aclose()
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    assert seed == "faults by seed=7\n"
    assert grant.sampling_token is not None


def test_the_openapi_document_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert nexus(openapi=True) == 0

    described = codec.decode_any(capsys.readouterr().out.encode())
    assert described["openapi"] == "3.1.0"
    assert "/api/v1/executa/invokes" in described["paths"]


@pytest.mark.parametrize("name", ["stub.toml", "stub.json"])
def test_a_file_sets_what_the_defaults_do_not(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(
        "open_to_all = false\n[grant]\nsampling = false\n[users.ada.plugins.brief]\nagent = false\n"
        if name.endswith("toml")
        else '{"open_to_all":false,"grant":{"sampling":false},'
        '"users":{"ada":{"plugins":{"brief":{"agent":false}}}}}'
    )

    settings = settings_of(path, tmp_path / "data", "seed=3,error=0.5")

    assert settings.open_to_all is settings.grant.sampling is False
    assert settings.users["ada"].plugins["brief"].agent is False
    assert settings.data_dir == str(tmp_path / "data")
    assert [rule.kind for rule in settings.faults.rules] == ["error"]
    assert settings.faults.seed == 3


@pytest.mark.parametrize("text", ["[grant", "grant = 1", "unknown = true"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "stub.toml"
    path.write_text(text)

    with pytest.raises(UsageError):
        settings_of(path, None, "")
    with pytest.raises(SystemExit):
        main(["--config", str(path)])


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", []),
        ("latency=0.1", ["latency"]),
        ("cut=3,malformed=1,duplicate=2", ["cut", "malformed", "duplicate"]),
        ("seed=1,rate_limit=1,slow_first_byte=2,skew=30", ["rate_limit", "slow_first_byte"]),
    ],
)
def test_faults_are_read_from_words(text: str, kinds: list[str]) -> None:
    assert [rule.kind for rule in read_faults(text).rules] == kinds


def test_a_seed_alone_means_a_mixture_that_a_careful_host_survives() -> None:
    config = read_faults("seed=7")

    assert config.seed == 7
    assert {rule.kind for rule in config.rules} == {"latency", "slow_first_byte", "rate_limit"}
    assert all(rule.endpoint != "sample" for rule in config.rules)


@pytest.mark.parametrize("text", ["seed", "seed=x", "magic=1", "cut=many", "seed=1,seed=2"])
def test_other_words_are_refused_with_the_list_of_words(text: str) -> None:
    with pytest.raises(UsageError, match="rate_limit=RATE"):
        read_faults(text)
