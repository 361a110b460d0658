"""The floor: answers every line with its start, as long as the line says, under uvloop.

A line begins with eight digits of its number and eight of the answer's length.
"""

import asyncio
import os
from collections import deque

import uvloop

READ = 65_536


async def main() -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    parts: list[bytes] = []
    unsent: deque[memoryview] = deque()
    os.set_blocking(0, False)
    os.set_blocking(1, False)

    def readable() -> None:
        data = os.read(0, READ)
        if not data:
            loop.remove_reader(0)
            done.set_result(None)
            return
        *lines, rest = data.split(b"\n")
        if lines:
            if parts:
                lines[0] = b"".join((*parts, lines[0]))
                parts.clear()
            write(b"".join([line[: int(line[8:16]) - 1] + b"\n" for line in lines]))
        if rest:
            parts.append(rest)

    def write(data: bytes) -> None:
        if not unsent:
            sent = send(data)
            if sent == len(data):
                return
            data = data[sent:]
            loop.add_writer(1, writable)
        unsent.append(memoryview(data))

    def writable() -> None:
        while unsent:
            sent = send(unsent[0])
            if sent < len(unsent[0]):
                unsent[0] = unsent[0][sent:]
                return
            unsent.popleft()
        loop.remove_writer(1)

    def send(data: "bytes | memoryview") -> int:
        try:
            return os.write(1, data)
        except BlockingIOError:
            return 0

    loop.add_reader(0, readable)
    await done


if __name__ == "__main__":
    uvloop.run(main())
