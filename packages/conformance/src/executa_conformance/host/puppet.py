"""The scripted plugin: a process that the host under test starts, and that the kit plays.

Runs by its path with nothing but the standard library (``python -I -S puppet.py SOCKET NAME``)
and decides nothing. What comes on stdin goes over the socket to the kit, byte for byte; what the
kit sends is done: write to stdout or stderr, exit, fork a child. Each message on the socket is a
letter, the length of its body in four bytes, and the body.
"""

import json
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time

HEAD = struct.Struct("!cI")


def send(channel: socket.socket, kind: bytes, body: bytes = b"") -> None:
    """Send one message to the kit."""
    channel.sendall(HEAD.pack(kind, len(body)) + body)


def receive(channel: socket.socket) -> tuple[bytes, bytes]:
    """The next message of the kit; ends the process when the kit has gone."""
    kind, size = HEAD.unpack(exactly(channel, HEAD.size))
    return kind, exactly(channel, size)


def exactly(channel: socket.socket, size: int) -> bytes:
    """So many bytes."""
    parts: list[bytes] = []
    while size:
        part = channel.recv(min(size, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def connect(path: str, who: dict[str, object]) -> socket.socket:
    """A channel to the kit, on which this process has said who it is."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    channel.connect(path)
    send(channel, b"H", json.dumps(who).encode())
    return channel


def write(fd: int, data: bytes) -> None:
    """Write everything, however long the host takes."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BrokenPipeError:
            return


def child(path: str, who: dict[str, object], *, leave: bool) -> None:
    """Fork a process that holds the pipes of this one, until it is ended or the kit lets go."""
    if os.fork():
        return
    if leave:
        os.setsid()
    else:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    channel = connect(path, {**who, "child": True, "pid": os.getpid()})
    channel.recv(1)
    os._exit(0)


def main() -> None:
    """Serve the kit until it, or the host, ends this process."""
    path, name = sys.argv[1:3]
    kinds = [stat.S_IFMT(os.fstat(fd).st_mode) for fd in (0, 1, 2)]
    who: dict[str, object] = {
        "name": name,
        "pid": os.getpid(),
        "pgid": os.getpgid(0),
        "env": dict(os.environ),
        "pipes": [kind in (stat.S_IFIFO, stat.S_IFSOCK) for kind in kinds],
        "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    }
    channel = connect(path, who)
    _, body = receive(channel)
    settings: dict[str, bool] = json.loads(body)

    def terminated(number: int, frame: object) -> None:
        send(channel, b"S", struct.pack("!I", number))
        if not settings.get("hold_term"):
            os._exit(0)

    signal.signal(signal.SIGTERM, terminated)
    waiting = [0, channel.fileno()]
    while True:
        ready, _, _ = select.select(waiting, [], [])
        if 0 in ready:
            data = os.read(0, 1 << 16)
            send(channel, b"I" if data else b"E", data)
            if not data:
                waiting.remove(0)
                if not settings.get("hold_end"):
                    os._exit(0)
        if channel.fileno() in ready:
            kind, body = receive(channel)
            if kind == b"O":
                write(1, body)
            elif kind == b"R":
                write(2, body)
            elif kind == b"X":
                os._exit(int(body))
            elif kind == b"K":
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(60)
            elif kind in (b"F", b"D"):
                child(path, who, leave=kind == b"D")


if __name__ == "__main__":
    main()
