"""Configuration files of tests, and what is found in them."""

from pathlib import Path

import pytest

from executa_host.config import HostConfig, read_config
from executa_host.config_reading import ConfigError

PLUGIN = '[plugins.x]\ncommand = ["python", "plugin.py"]\n'


def write(folder: Path, text: str) -> Path:
    """A configuration file in `folder`."""
    file = folder / "host.toml"
    file.write_text(text, encoding="utf-8")
    return file


def read(folder: Path, text: str, **environ: str) -> HostConfig:
    """What a file with this text says, in this environment."""
    return read_config(write(folder, text), environ=environ)


def faults_of(folder: Path, text: str, **environ: str) -> dict[str, str]:
    """What is wrong with a file with this text, by path."""
    with pytest.raises(ConfigError) as refused:
        read(folder, text, **environ)
    for fault in refused.value.faults:
        assert str(fault) in str(refused.value)
    return {fault.path: fault.message for fault in refused.value.faults}
