"""A plugin pays for what it uses: names load when they are needed, and no sooner."""

import ast
import json
import operator
import subprocess
import sys
from pathlib import Path

import pytest

import executa_sdk

FIELD_MODULES = {
    "agent": ["AgentError", "AgentSession", "AgentSessionClient", "METHOD_AGENT_COMPLETE"],
    "context": ["InvokeContext", "attach_invoke_context", "bind_invoke", "set_current_invoke_id"],
    "embeddings": ["EMBED_ERR_NOT_GRANTED", "EmbeddingsClient", "EmbeddingsError"],
    "host_upload": ["HostUploadClient", "UPLOAD_ERR_TOO_LARGE", "UploadError"],
    "image": ["IMAGE_ERR_N_UNSUPPORTED", "ImageClient", "ImageError"],
    "progress": ["METHOD_EXECUTA_PROGRESS", "PROGRESS_TYPES", "emit_progress"],
    "sampling": ["MAX_STDIO_MESSAGE_BYTES", "SAMPLING_ERR_TIMEOUT", "SamplingClient"],
    "storage": ["STORAGE_ERR_TIMEOUT", "FilesClient", "StorageClient", "make_response_router"],
}


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `code`."""
    code += "\nimport json as _json, sys as _sys; print(_json.dumps(sorted(_sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


PLAIN = """
from executa_sdk import Plugin
plugin = Plugin("plain", "1.0.0")
@plugin.tool
def echo(text: str, times: int = 1) -> str:
    "Say it again."
    return text * times
"""


def test_importing_the_package_loads_next_to_nothing() -> None:
    loaded = loaded_by("import executa_sdk")

    assert {name for name in loaded if name.startswith("executa")} == {"executa_sdk"}
    assert not loaded & {"asyncio", "msgspec", "inspect", "dataclasses"}


def test_a_plain_plugin_loads_no_client_and_no_context() -> None:
    loaded = loaded_by(PLAIN + "plugin.manifest(); import executa_sdk.serve")

    ours = {name for name in loaded if name.startswith("executa_sdk.")}
    assert not {name for name in ours if name.startswith("executa_sdk.clients")}
    assert not ours & {
        f"executa_sdk.{name}"
        for name in ("context", "sync_context", "reverse", "stores", "file_store", "uses", "spill")
    }
    assert "executa_protocol.methods.registry" not in loaded
    assert "executa_protocol.manifest" not in loaded
    assert not loaded & {"tempfile", "urllib.request", "http.client", "pytest", "uvloop", "asyncio"}


def test_the_fixtures_for_pytest_load_nothing_that_a_test_may_want_to_measure() -> None:
    loaded = loaded_by("import executa_sdk.testing.pytest_plugin")

    assert {name for name in loaded if name.startswith("executa_")} == {
        "executa_sdk",
        "executa_sdk.testing",
        "executa_sdk.testing.pytest_plugin",
    }


def test_a_low_level_plugin_loads_no_server() -> None:
    loaded = loaded_by("from executa_sdk import SamplingClient, AgentSessionClient, bind_invoke")

    assert not loaded & {"executa_sdk.plugin", "executa_sdk.serve", "executa_protocol.aio.peer"}


@pytest.mark.parametrize("name", executa_sdk.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(executa_sdk, name) is not None
    assert name in dir(executa_sdk)


def test_the_lazy_table_is_what_type_checkers_read() -> None:
    tree = ast.parse(Path(executa_sdk.__file__ or "").read_text(encoding="utf-8"))
    imported = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("executa_")
        for alias in node.names
    }

    assert vars(executa_sdk)["_HOME"] == imported
    assert sorted(imported) == sorted(executa_sdk.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        operator.attrgetter("nonsense")(executa_sdk)


@pytest.mark.parametrize("module", FIELD_MODULES)
def test_the_fields_modules_are_there(module: str) -> None:
    found = __import__(f"executa_sdk.{module}", fromlist=["*"])

    assert [name for name in FIELD_MODULES[module] if not hasattr(found, name)] == []
