"""`docs/reference/configuration.md`: the host's file, and the options of the stand-in for nexus."""

from pathlib import Path
from typing import Any, Final

import msgspec

from executa_nexus_stub.config import StubConfig
from scripts.docs.markdown import page, prose, schema_table

ROOT: Final = Path(__file__).parents[2]

_INTRO: Final = """\
`executa serve --config host.toml` and `Host.from_config("host.toml")` read one TOML file. A name
that is not known is refused, and every fault is told with its path. Secrets are never written
into it: they are named, `{ env = "NAME" }` or `{ file = "PATH" }`.

The file below, `examples/host.toml`, shows every name. What is commented out is the default, or
what could stand there.
"""

_STUB: Final = """\
`[nexus] options` are those of the stand-in for nexus, which also reads them from a TOML or JSON
file after `--config`.
"""


def configuration_page() -> str:
    """The example file as it stands, then the tables of the stub's options."""
    text = (ROOT / "examples" / "host.toml").read_text(encoding="utf-8")
    (_,), components = msgspec.json.schema_components([StubConfig], ref_template="{name}")
    parts = [*_INTRO.splitlines(), "", "## host.toml", "", "```toml", *text.splitlines(), "```", ""]
    parts += ["## The stand-in for nexus", "", *_STUB.splitlines(), ""]
    order = sorted(components, key=lambda name: (name != StubConfig.__name__, name))
    for name in order:
        schema: dict[str, Any] = components[name]
        parts += [f"### {name}", ""]
        if text := prose(schema.get("description")):
            parts += [text, ""]
        parts += schema_table(schema)
    return page("Configuration", parts)
