"""`PluginProcess`: a plugin run as a host runs it, for tests without an event loop.

Requests go through real pipes. Reverse calls are answered by `Services` on the thread
that reads. Every wait is bounded.
"""

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from msgspec import UNSET, Raw, json

from executa_protocol import envelope
from executa_protocol.codec import decode_any, encode
from executa_protocol.codes import ErrorObject, rpc_error, wire_error
from executa_protocol.envelope import Message
from executa_protocol.errors import CallTimeout, ConnectionLost, RpcError
from executa_protocol.faults import as_object
from executa_protocol.handshake import host_offer, read_answer
from executa_protocol.manifest_reading import read_manifest
from executa_protocol.methods.invoke import read_invoke_result
from executa_sdk.errors import ToolError
from executa_sdk.testing.services import Services, Usage

Object = dict[str, Any]

TIMEOUT: Final = 10.0
"""Seconds that a test waits for an answer: far more than a plugin needs, far less than CI."""

_ERROR = json.Decoder(ErrorObject)


class PluginProcess:
    """A plugin's process, for a ``with`` block.

    `command` is an argument list, or the path of a Python file. `services` scripts the
    host's side. `stderr` is what the plugin has written so far.
    """

    def __init__(
        self,
        command: Sequence[str] | str | os.PathLike[str],
        *,
        services: Services | None = None,
        credentials: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self.services = services or Services()
        self._credentials = dict(credentials or {})
        self._timeout = timeout
        self._waiting: dict[int, queue.SimpleQueue[Message | None]] = {}
        self._active: dict[str, Usage] = {}
        self._last = 0
        self._lock = threading.Lock()
        self.stray: list[bytes] = []
        """Lines on stdout that are no JSON-RPC: a host skips them, a test should not."""
        self.progress: list[Object] = []
        self._stderr: list[bytes] = []
        self.process = subprocess.Popen(  # noqa: S603 - the plugin under test
            _arguments(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=cwd,
        )
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._read, self._drain)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def stderr(self) -> str:
        """What the plugin has written to stderr so far."""
        return b"".join(self._stderr).decode(errors="replace")

    # --- Requests ---------------------------------------------------------------------------

    def initialize(self) -> Object:
        """Shake hands as a host does."""
        raw = self._request("initialize", encode(host_offer()))
        self.services.negotiated = read_answer(raw)
        return decode_any(raw)

    def describe(self) -> Object:
        """The plugin's manifest."""
        raw = self._request("describe", None)
        self.services.declared = read_manifest(raw).declared()
        return decode_any(raw)

    def invoke(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool and give what it returned; `initialize` and `describe` come first.

        Raises `ToolError` for ``success: false``, `RpcError` for an error answer.
        """
        context: Object = {"invoke_id": os.urandom(16).hex()}
        if self._credentials:
            context["credentials"] = self._credentials
        self._active[context["invoke_id"]] = Usage()
        params = {"tool": tool, "arguments": arguments, "context": context}
        try:
            result = read_invoke_result(self._request("invoke", encode(params)))
        finally:
            del self._active[context["invoke_id"]]
        data = None if result.data is UNSET else decode_any(result.data)
        if not result.success:
            raise ToolError("" if result.error is UNSET else result.error, data)
        return data

    def request(self, method: str, params: Any = None) -> Any:
        """Any request. Raises `RpcError`, `CallTimeout`, `ConnectionLost`."""
        return decode_any(self._request(method, None if params is None else encode(params)))

    def write(self, data: bytes) -> None:
        """Put bytes on the wire as they are."""
        stdin = self.process.stdin
        if stdin is None:
            raise ConnectionLost("the plugin has no stdin", written=False)
        with self._lock:
            stdin.write(data)
            stdin.flush()

    def close(self) -> int:
        """Close the plugin's input and wait for it to end; gives its exit status.

        Raises `subprocess.TimeoutExpired`, having killed it.
        """
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            return self.process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            for thread in self._threads:
                thread.join(self._timeout)
            for stream in (self.process.stdout, self.process.stderr):
                if stream is not None:
                    stream.close()

    def _request(self, method: str, params: bytes | None) -> Raw:
        self._last += 1
        number = self._last
        answers: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._waiting[number] = answers
        try:
            self.write(envelope.request_frame(number, method, params))
            answer = answers.get(timeout=self._timeout)
        except queue.Empty:
            msg = f"{method}: no answer within {self._timeout:g} s; stderr: {self.stderr}"
            raise CallTimeout(msg, written=True) from None
        except BrokenPipeError:
            raise self._lost(written=False) from None
        finally:
            self._waiting.pop(number, None)
        if answer is None:
            raise self._lost(written=True)
        if answer.error is not UNSET:
            error = _ERROR.decode(answer.error)
            raise rpc_error(error.code, error.message, error.data or None)
        return answer.result if isinstance(answer.result, Raw) else Raw(b"null")

    def _lost(self, *, written: bool) -> ConnectionLost:
        self._threads[1].join(self._timeout)  # what it says on its way out
        return ConnectionLost(f"the plugin has ended: {self.stderr}", written=written)

    # --- Threads --------------------------------------------------------------------------------

    def _read(self) -> None:
        for line in self.process.stdout or ():
            message = envelope.parse(line)
            if not isinstance(message, Message):
                self.stray.append(line)
            elif message.method is UNSET:
                answers = self._waiting.get(message.id) if isinstance(message.id, int) else None
                if answers is None:
                    self.stray.append(line)
                else:
                    answers.put(message)
            elif message.id is UNSET:
                params = message.params
                members = as_object(decode_any(params)) if isinstance(params, Raw) else None
                self.progress.append((members or {}).get("data", {}))
            else:
                self._serve(message)
        for answers in list(self._waiting.values()):
            answers.put(None)

    def _serve(self, request: Message) -> None:
        identity: Any = request.id
        try:
            result = self.services.serve(str(request.method), request.params, self._active)
            frame = envelope.result_frame(identity, encode(result))
        except RpcError as fault:
            error = ErrorObject(fault.code, fault.message, fault.data or UNSET)
            frame = envelope.error_frame(identity, encode(error))
        except Exception as fault:  # noqa: BLE001 - the test's script is at fault
            text = f"the test host failed: {type(fault).__name__}: {fault}"
            frame = envelope.error_frame(identity, encode(wire_error("INTERNAL_ERROR", text)))
        try:
            self.write(frame)
        except (BrokenPipeError, ValueError):
            return  # it has ended meanwhile

    def _drain(self) -> None:
        for line in self.process.stderr or ():
            self._stderr.append(line)


def _arguments(command: Sequence[str] | str | os.PathLike[str]) -> list[str]:
    if isinstance(command, str | os.PathLike):
        return [sys.executable, os.fspath(command)]
    return list(command)
