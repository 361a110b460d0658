"""The raw plugin with worse manners: it floods, sends lines without measure, leaves daemons."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a program, it knows its folder only

from tests.support import raw_plugin
from tests.support.raw_plugin import ANSWERED, Params

TOOLS: dict[str, list[dict[str, Any]]] = {
    "flood": [
        {"name": "stream", "type": "string"},
        {"name": "bytes", "type": "integer"},
        {"name": "line", "type": "string"},
    ],
    "long_line": [{"name": "bytes", "type": "integer"}],
    "daemon": [],
    "by_file": [
        {"name": "name", "type": "string"},
        {"name": "kind", "type": "string"},
        {"name": "content", "type": "string", "required": False},
        {"name": "key", "type": "string", "required": False},
    ],
}


class RudePlugin(raw_plugin.Plugin):
    """Has tools of its own beside those of the raw plugin."""

    def tool_flood(self, params: Params, _identity: Any) -> Any:
        """Repeat `line` on a stream, as it is, until so many bytes are written."""
        arguments = params["arguments"]
        line = arguments["line"].encode("latin-1")  # so that a test can ask for any bytes
        block = line * max(1, 65536 // len(line))
        stream = sys.stdout if arguments["stream"] == "stdout" else sys.stderr
        with self.lock:
            for _ in range(max(1, arguments["bytes"] // len(block))):
                stream.buffer.write(block)
            stream.flush()
        return None

    def tool_long_line(self, params: Params, identity: Any) -> Any:
        """An answer of one very long line."""
        block = b"x" * 65536
        with self.lock:
            out = sys.stdout.buffer
            out.write(b'{"jsonrpc":"2.0","id":%d,"result":{"success":true,"data":"' % identity)
            for _ in range(params["arguments"]["bytes"] // len(block)):
                out.write(block)
            out.write(b'"}}\n')
            out.flush()
        return ANSWERED

    def tool_by_file(self, params: Params, identity: Any) -> Any:
        """Answer by a pointer to a file of some kind; a relative name lies in TMPDIR."""
        arguments = params["arguments"]
        path = Path(os.environ["TMPDIR"], arguments["name"])
        content = arguments.get("content", "").replace("$ID", str(identity))
        kind = arguments["kind"]
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.with_suffix(".real").write_text(content)
            path.symlink_to(path.with_suffix(".real"))
        elif kind == "sparse":
            with path.open("wb") as file:
                file.truncate(int(content))
        elif kind == "file":
            path.write_text(content)
        key = arguments.get("key", "__file_transport")
        self.send({"jsonrpc": "2.0", "id": identity, key: str(path)})
        return ANSWERED

    def tool_daemon(self, _params: Params, identity: Any) -> Any:
        """Leave a daemon behind that has a session of its own and keeps the pipes, and die."""
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(writer, str(os.getpid()).encode())
                signal.alarm(60)
                while True:
                    signal.pause()
            os._exit(0)
        self.answer(identity, {"success": True, "data": int(os.read(reader, 20))})
        os._exit(0)


if __name__ == "__main__":
    raw_plugin.TOOLS.update(TOOLS)
    raw_plugin.main(RudePlugin)
