"""The floor: a process that gives every line back as it came, under uvloop, with no JSON."""

import asyncio
import os

import uvloop


async def main() -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    os.set_blocking(0, False)

    def readable() -> None:
        data = os.read(0, 65536)
        if data:
            os.write(1, data)
        else:
            loop.remove_reader(0)
            done.set_result(None)

    loop.add_reader(0, readable)
    await done


if __name__ == "__main__":
    uvloop.run(main())
