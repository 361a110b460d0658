"""The tables [actions] and [serve] of a configuration file, and what is wrong with them."""

import re
from pathlib import Path

import msgspec
import pytest

from executa_host.actions.records import Effect, Mode, Retry
from executa_host.actions.settings import EngineSettings, Retention, Slots
from executa_host.config_actions import ActionsConfig
from executa_host.config_serve import ServeConfig, Tls
from executa_protocol.errors import UsageError
from tests.host.config_files import faults_of, read

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_an_empty_file_means_the_defaults_of_the_engine(tmp_path: Path) -> None:
    config = read(tmp_path, "")
    assert config.actions == ActionsConfig()
    assert config.serve == ServeConfig()
    assert config.serve.host == "127.0.0.1"


def test_every_setting_of_the_engine_can_be_set(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """
        [host]
        strict = true
        [actions]
        store = "state/work.db"
        synchronous = "NORMAL"
        open_actions = 7
        own_approvals = false
        settle_after = 1.5
        housekeeping_every = 2
        expires_after = 3600
        [actions.slots]
        in_all = 5
        per_plugin = 2
        per_tenant = 3
        [actions.retention]
        age = 60
        count = 0
        key_outlives = 61
        marker_age = 62
        [actions.callbacks]
        allow = ["hooks.internal:8443", "10.0.0.0/8", "[::1]:80", "::1", "localhost"]
        timeout = 4
        attempts = 3
        base = 0.5
        max = 9
        secrets = { acme = { env = "CALLBACK_KEY" } }
        [[actions.delegations]]
        actor = "bot"
        subject = "ada"
        tenant = "acme"
        capabilities = ["notebook.*"]
        user_id = "ada-2"
        [actions.capabilities."notebook.remember"]
        effect = "idempotent"
        modes = ["sync", "streaming"]
        approval = true
        approvers = ["grace"]
        approval_ttl = 30
        timeout = 2.5
        retry = { attempts = 9, base = 0.1, max = 1 }
        [actions.capabilities."notebook.*"]
        [actions.capabilities."*"]
        timeout = 1
        """,
        CALLBACK_KEY="shared",
    )
    assert config.actions.store == tmp_path / "state" / "work.db"
    assert config.actions.synchronous == "NORMAL"
    settings = config.actions.settings
    default = EngineSettings()
    left = [
        name
        for name in EngineSettings.__struct_fields__
        if getattr(settings, name) == getattr(default, name)
    ]
    assert left == []
    assert settings.slots == Slots(in_all=5, per_plugin=2, per_tenant=3)
    assert settings.retention == Retention(
        age_ms=60_000, count=0, key_outlives_ms=61_000, marker_age_ms=62_000
    )
    assert settings.settle_after_ms == 1500
    assert settings.callbacks.secrets == {"acme": b"shared"}
    assert settings.callbacks.base_ms == 500
    assert (settings.delegations[0].actor, settings.delegations[0].user_id) == ("bot", "ada-2")
    remember = settings.capabilities["notebook.remember"]
    assert remember.effect is Effect.IDEMPOTENT
    assert remember.modes == (Mode.SYNC, Mode.STREAMING)
    assert remember.retry == Retry(9, 100, 1000)
    assert (remember.timeout_ms, remember.approval_ttl_ms) == (2500, 30_000)
    assert settings.capabilities["notebook.*"].timeout_ms is msgspec.UNSET
    assert "CALLBACK_KEY" in config.hide_env
    assert "shared" not in repr(config)


def test_every_fault_is_named_with_its_path(tmp_path: Path) -> None:
    faults = faults_of(
        tmp_path,
        """
        [serve]
        port = 70000
        hosst = "x"
        grace = -1
        tls_certificate = "no/such.pem"
        [actions]
        synchronous = "OFF"
        stores = "x"
        open_actions = 0
        own_approvals = "no"
        expires_after = "soon"
        [actions.slots]
        in_all = 1.5
        per_user = 3
        [actions.retention]
        age = 0
        count = -1
        [actions.callbacks]
        allow = ["ok.example", "http://x.example/", "a b", ":80"]
        secrets = { a = "sk-distinctive", b = { env = "NOT_SET" } }
        [actions.capabilities.notebook]
        timeout = 1
        [actions.capabilities."a.b"]
        effect = "none"
        modes = ["sync", "later"]
        retry = { attempts = 0, tries = 1 }
        timeout = 1e9
        [[actions.delegations]]
        actor = "bot"
        capabilities = "all"
        """,
    )
    expected = {
        "serve.port": "expected an integer from 0 to 65535, got 70000",
        "serve.hosst": "did you mean host?",
        "serve.grace": "expected a number from 0",
        "serve.tls_certificate": "there is no file",
        "serve.tls_key": "expected a file beside tls_certificate",
        "actions.synchronous": 'expected "FULL" or "NORMAL"',
        "actions.stores": "did you mean store?",
        "actions.open_actions": "expected an integer from 1",
        "actions.own_approvals": "expected a boolean",
        "actions.expires_after": "expected a number",
        "actions.slots.in_all": "expected an integer",
        "actions.slots.per_user": "unknown name",
        "actions.retention.age": "expected a number from 0.001",
        "actions.retention.count": "expected an integer from 0",
        'actions.callbacks."allow[1]"': "expected a host, host:port or a network",
        'actions.callbacks."allow[2]"': "expected a host, host:port or a network",
        'actions.callbacks."allow[3]"': "expected a host, host:port or a network",
        "actions.callbacks.secrets.a": "a secret itself does not belong into this file",
        "actions.callbacks.secrets.b": "the environment variable NOT_SET is not set",
        "actions.capabilities.notebook": 'expected "PLUGIN.TOOL", "PLUGIN.*" or "*"',
        'actions.capabilities."a.b".effect': 'expected "read" or "idempotent" or "mutating"',
        'actions.capabilities."a.b".modes': "expected some of sync, async, streaming",
        'actions.capabilities."a.b".retry.attempts': "expected an integer from 1",
        'actions.capabilities."a.b".retry.tries': "unknown name",
        'actions.capabilities."a.b".timeout': "expected a number from",
        "actions.delegations[0].subject": "expected a principal",
        "actions.delegations[0].capabilities": "expected an array of strings",
    }
    assert set(faults) == set(expected)
    for path, message in expected.items():
        assert message in faults[path], path


@pytest.mark.parametrize("text", ["[actions]\ndelegations = 1", "[actions]\ndelegations = [1]"])
def test_delegations_that_are_no_tables_are_a_fault(tmp_path: Path, text: str) -> None:
    assert "[[actions.delegations]]" in faults_of(tmp_path, text)["actions.delegations"]


def test_tables_of_the_wrong_kind_are_faults(tmp_path: Path) -> None:
    faults = faults_of(tmp_path, "actions = 1\nserve = []")
    assert set(faults) == {"actions", "serve"}


def test_a_certificate_that_is_none_is_a_sentence_with_its_files(tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("nonsense")
    text = '[serve]\ntls_certificate = "cert.pem"\ntls_key = "key.pem"'
    tls = read(tmp_path, text).serve.tls
    assert tls == Tls(tmp_path / "cert.pem", tmp_path / "key.pem")
    assert tls is not None
    with pytest.raises(UsageError, match=r"cert\.pem"):
        tls.context()


def test_what_is_commented_out_in_the_example_may_stand_there(tmp_path: Path) -> None:
    text = (EXAMPLES / "host.toml").read_text(encoding="utf-8")
    plain = re.sub(r"^# (?=(?:\w+|\"\*\") = |\[)", "", text, flags=re.MULTILINE)
    faults = faults_of(
        tmp_path, plain, NOTEBOOK_API_KEY="value", CALLBACK_KEY="shared", OTHER_KEY="value"
    )
    assert {path for path in faults if "file" not in faults[path]} == set()
    assert {"serve.tls_certificate", 'actions.callbacks.secrets."*"'} <= set(faults)
