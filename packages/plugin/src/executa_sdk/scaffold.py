"""``executa new NAME``: a working plugin project, to be changed into one's own.

Writes text only: the files below are a plugin, its test and its `pyproject`.
"""

import re
import sys
from pathlib import Path
from typing import Final

from executa_protocol.errors import UsageError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")

_PYPROJECT: Final = """\
[project]
name = "{name}"
version = "0.1.0"
description = "An Executa plugin."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["executa-sdk"]

[dependency-groups]
dev = ["executa-sdk[testing]", "pytest-asyncio>=1.2"]

[project.scripts]
{name} = "plugin:main"

[tool.pytest.ini_options]
asyncio_default_fixture_loop_scope = "function"
asyncio_mode = "auto"

[build-system]
requires = ["uv_build>=0.9,<0.14"]
build-backend = "uv_build"

[tool.uv.build-backend]
module-name = "plugin"
module-root = ""
"""

_PLUGIN: Final = '''\
"""The {name} plugin."""

from executa_sdk import Context, Plugin, ToolError

plugin = Plugin("{name}", "0.1.0", description="An Executa plugin.")


@plugin.tool(effect="read")
def greet(name: str) -> str:
    """Greet someone.

    Args:
        name: Whom to greet.
    """
    if not name.strip():
        raise ToolError("there is nobody to greet")
    return f"Hello, {{name}}!"


@plugin.tool
async def remember(topic: str, text: str, ctx: Context) -> int:
    """Keep a note and say how many there are about its topic.

    Args:
        topic: What the note is about.
        text: The note.
    """
    notes = await ctx.storage.tool.update(topic, lambda old: [*old, text], default=[])
    return len(notes)


@plugin.tool(effect="read")
async def summarize(topic: str, ctx: Context) -> str:
    """Have the host's model summarize what is noted about a topic.

    Args:
        topic: What the notes are about.
    """
    notes = await ctx.storage.tool.get(topic, [])
    if not notes:
        raise ToolError(f"there are no notes about {{topic}}")
    answer = await ctx.sample("Summarize in one sentence:\\n" + "\\n".join(notes), max_tokens=100)
    return answer.text


def main() -> None:
    plugin.run()


if __name__ == "__main__":
    main()
'''

_TEST: Final = '''\
"""The plugin's tools, called in memory and once as a real process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executa_sdk import ToolError
from executa_sdk.testing import TestHost
from plugin import plugin


async def test_notes_are_kept_and_summarized() -> None:
    async with TestHost(plugin, sample="Tea is on Monday.") as host:
        assert await host.invoke("remember", topic="tea", text="Tea on Monday at four.") == 1
        assert await host.invoke("remember", topic="tea", text="Bring cake.") == 2
        assert await host.invoke("summarize", topic="tea") == "Tea is on Monday."


async def test_nobody_cannot_be_greeted() -> None:
    async with TestHost(plugin) as host:
        with pytest.raises(ToolError, match="nobody"):
            await host.invoke("greet", name=" ")


def test_the_plugin_works_as_a_process(executa_process: Callable[..., Any]) -> None:
    process = executa_process(Path(__file__).with_name("plugin.py"))
    assert process.invoke("greet", name="Ada") == "Hello, Ada!"
'''

_README: Final = """\
# {name}

An Executa plugin. `plugin.py` has its tools, `test_plugin.py` tests them.

    uv run pytest

`executa dev .` is a prompt to call it while you write it. A host starts it with `python
plugin.py`, or with `{name}` once it is installed.
"""

FILES: Final = {
    "README.md": _README,
    "plugin.py": _PLUGIN,
    "pyproject.toml": _PYPROJECT,
    "test_plugin.py": _TEST,
}
"""What is written, by file name."""


def new(name: str, directory: Path | None = None) -> Path:
    """Write a working plugin project: pyproject, plugin and test.

    Parameters
    ----------
    name
        The plugin's name: letters and digits, with single hyphens or underscores between.
    directory
        Where to write it; a folder of the plugin's name by default. It must be empty or
        not exist.
    """
    if not _NAME.fullmatch(name):
        msg = f"{name!r} is no plugin name; take letters and digits, with - or _ between them"
        raise UsageError(msg)
    folder = Path(name) if directory is None else directory
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        msg = f"{folder} exists and is not an empty folder"
        raise UsageError(msg)
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in FILES.items():
        (folder / file).write_text(text.format(name=name), encoding="utf-8")
    sys.stdout.write(
        f"Wrote {', '.join(FILES)} to {folder}.\n"
        f"Try it: executa dev {folder}\nTest it: cd {folder} && uv run pytest\n"
    )
    return folder
