"""File content over HTTP on this machine, for tests of ``ctx.files``.

The server starts with the first upload. URLs carry a random path, so that nothing else
on the machine can guess them.
"""

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Blobs:
    """Content by URL. `close` ends the server."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self._server: ThreadingHTTPServer | None = None

    def url(self, name: str) -> str:
        """Where the content of `name` is put to and read from."""
        if self._server is None:
            self._server = self._start()
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/{name}"

    def new_name(self) -> str:
        """A name for content that is about to be uploaded."""
        return os.urandom(16).hex()

    def close(self) -> None:
        """Stop serving. Idempotent."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _start(self) -> ThreadingHTTPServer:
        content = self.content

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                content[self.path.strip("/")] = self.rfile.read(length)
                self.send_response(200)
                self.send_header("ETag", '"uploaded"')
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self) -> None:
                data = content.get(self.path.strip("/"))
                self.send_response(404 if data is None else 200)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Tests read stderr; requests are not news."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server
