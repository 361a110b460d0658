"""Plugins where there is no poll, no waiting for pipes, and nothing of POSIX to import.

Not Windows: a process that has lost what Windows lacks, and raises where it is used.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from executa_sdk.testing import PluginProcess

WINDOWS = """\
import asyncio, os, runpy, select, subprocess, sys, tempfile, types, typing

def missing(*_):
    raise NotImplementedError("there is no such thing here")

for name in ("fcntl", "grp", "pwd", "resource", "termios", "uvloop"):
    sys.modules[name] = None
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "getuid", "killpg", "fork", "mkfifo"):
    delattr(os, name)
os.O_BINARY = 32768
os.set_blocking = missing
del select.poll
for name in ("add_reader", "add_writer", "add_signal_handler"):
    setattr(asyncio.SelectorEventLoop, name, missing)
sys.modules["msvcrt"] = types.SimpleNamespace(
    setmode=lambda fd, mode: print(f"binary {fd}", file=sys.stderr) if mode == 32768 else missing()
)
sys.platform = "win32"
"""

PLUGIN = """\
from executa_sdk import Context, Plugin

plugin = Plugin("there", "1.0.0")


@plugin.tool
async def count(name: str, ctx: Context) -> int:
    "Count in storage."
    return await ctx.storage.user.update(name, lambda n: (n or 0) + 1)


@plugin.tool
def repeat(text: str, times: int) -> str:
    "In a thread, and larger than a pipe."
    return text * times


if __name__ == "__main__":
    plugin.run()
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[PluginProcess]:
    """The plugin, in a process like that."""
    (tmp_path / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    start = tmp_path / "start.py"
    start.write_text(f"{WINDOWS}\nrunpy.run_path('plugin.py', run_name='__main__')\n")
    with PluginProcess(str(start), cwd=str(tmp_path)) as process:
        process.initialize()
        process.describe()
        yield process


def test_a_plugin_serves_calls_reverse_calls_and_large_results(process: PluginProcess) -> None:
    assert process.invoke("count", name="tea") == 1
    assert process.invoke("count", name="tea") == 2
    assert process.invoke("repeat", text="x", times=300_000) == "x" * 300_000


def test_every_module_of_the_protocol_and_the_sdk_can_be_imported() -> None:
    code = f"""\
{WINDOWS}
import importlib, pathlib
import executa_protocol, executa_sdk

for package in (executa_protocol, executa_sdk):
    root = pathlib.PurePosixPath(package.__file__).parent
    for file in sorted(pathlib.Path(root).rglob("*.py")):
        parts = file.relative_to(root.parent).with_suffix("").parts
        if "examples" not in parts:
            importlib.import_module(".".join(parts).removesuffix(".__init__"))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stderr
