"""How a plugin is found: by command, file or folder, in the field's order."""

import json
import sys
from pathlib import Path

import pytest

from executa_host.cli import exits
from executa_host.cli.detect import find_plugin


def _folder(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        file = tmp_path / name.replace("__", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


def test_a_command_is_taken_as_it_is() -> None:
    spec = find_plugin([sys.executable, "my/tool.py", "--loud"])
    assert spec.command == (sys.executable, "my/tool.py", "--loud")
    assert spec.name == "tool"


def test_a_wrapper_that_may_build_first_is_given_time() -> None:
    assert find_plugin(["env", "x"]).type == "program"
    assert find_plugin(["uv", "run", "x"]).type == "binary"


def test_executa_json_comes_first(tmp_path: Path) -> None:
    spec = {"slug": "my-tool", "command": "python3 run.py --fast"}
    folder = _folder(tmp_path, executa__json=json.dumps(spec), plugin__py="")
    found = find_plugin([str(folder)])
    assert found.command == ("python3", "run.py", "--fast")
    assert (found.cwd, found.name) == (str(folder), "my-tool")


def test_a_script_of_pyproject_is_run_by_uv(tmp_path: Path) -> None:
    text = '[project]\nname = "weather"\n[project.scripts]\nweather-tool = "weather:main"\n'
    folder = _folder(tmp_path, pyproject__toml=text)
    found = find_plugin([str(folder)])
    assert found.command == ("uv", "run", "--project", str(folder), "weather-tool")
    assert found.type == "binary"


def test_executa_json_says_the_id_and_whether_it_unpacks_itself(tmp_path: Path) -> None:
    spec = {"tool_id": "tool-me-1", "command": ["./dist/tool"], "type": "binary"}
    found = find_plugin([str(_folder(tmp_path, executa__json=json.dumps(spec)))])
    assert (found.tool_id, found.type) == ("tool-me-1", "binary")


def test_a_project_whose_needs_are_here_is_run_by_this_python(tmp_path: Path) -> None:
    text = '[project]\nname = "w"\ndependencies = [{}]\n[project.scripts]\nw = "plugin:main"\n'
    plugin = 'if __name__ == "__main__":\n    ...\n'
    here = _folder(tmp_path / "here", pyproject__toml=text.format('"pytest>=1"'), plugin__py=plugin)
    assert find_plugin([str(here)]).command == (sys.executable, str(here / "plugin.py"))
    needs = text.format('"no-such-distribution"')
    away = _folder(tmp_path / "away", pyproject__toml=needs, plugin__py=plugin)
    assert find_plugin([str(away)]).command[0] == "uv"


def test_a_source_that_reads_as_a_plugin_is_found_when_nothing_else_is(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path,
        helpers__py="x = 1\n",
        weather__py="from executa_sdk import Plugin\n",
        test_weather__py="import executa_sdk\n",
    )
    assert find_plugin([str(folder)]).command == (sys.executable, str(folder / "weather.py"))
    _folder(tmp_path, other__mjs='// {"jsonrpc": "2.0"} describe')
    with pytest.raises(exits.Stop, match="several plugins"):
        find_plugin([str(folder)])


def test_a_folder_above_plugins_names_those_below(tmp_path: Path) -> None:
    _folder(
        tmp_path, **{"tea/plugin__py": "", "cake/executa__json": '{"command": "x"}', "no/x": ""}
    )
    with pytest.raises(exits.Stop, match="There are plugins in cake, tea"):
        find_plugin([str(tmp_path)])


def test_a_path_that_is_nearly_right_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "notebook").mkdir()
    with pytest.raises(exits.Stop, match=r"Did you mean .*notebook"):
        find_plugin([str(tmp_path / "notebok")])


def test_a_plugin_file_is_run_by_this_python(tmp_path: Path) -> None:
    folder = _folder(tmp_path, plugin__py="", pyproject__toml='[project]\nname = "x"\n')
    assert find_plugin([str(folder)]).command == (sys.executable, str(folder / "plugin.py"))


@pytest.mark.parametrize(
    "package", [{"bin": "cli.js"}, {"bin": {"t": "cli.js"}}, {"main": "cli.js"}]
)
def test_package_json_names_its_program(tmp_path: Path, package: dict[str, object]) -> None:
    text = json.dumps({"name": "@me/tool", **package})
    folder = _folder(tmp_path, package__json=text)
    found = find_plugin([str(folder)])
    assert found.command == ("node", str(folder / "cli.js"))
    assert found.name == "me-tool"


def test_a_program_in_bin_is_found(tmp_path: Path) -> None:
    program = _folder(tmp_path, **{"bin/tool": "#!/bin/sh\n"}) / "bin" / "tool"
    program.chmod(0o755)
    assert find_plugin([str(tmp_path)]).command == (str(program),)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "no plugin found"),
        ({"package__json": '{"bin": {"a": "a.js", "b": "b.js"}}'}, "several plugins"),
        ({"executa__json": "{"}, "executa.json cannot be read"),
        ({"package__json": "[]"}, "expected an object"),
        ({"executa__json": '{"command": "run \\"x"}'}, "no closing quotation"),
        ({"pyproject__toml": "["}, "pyproject.toml cannot be read"),
    ],
)
def test_a_folder_without_one_plugin_says_what_to_do(
    tmp_path: Path, files: dict[str, str], told: str
) -> None:
    with pytest.raises(exits.Stop, match=told) as stop:
        find_plugin([str(_folder(tmp_path, **files))])
    assert stop.value.code == exits.USAGE
