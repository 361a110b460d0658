"""The floor under an HTTP API: aiohttp under uvloop that gives back what came, unstored."""

import asyncio
import json
import signal

import uvloop
from aiohttp import web


async def answer(request: web.Request) -> web.Response:
    """Give the text of the body back."""
    body = await request.json()
    return web.json_response({"result": {"status": "completed", "output": body["input"]["text"]}})


async def main() -> None:
    """Serve on a free port of loopback until a signal comes."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(json.dumps({"url": f"http://127.0.0.1:{runner.addresses[0][1]}"}), flush=True)
    await stop.wait()
    await runner.cleanup()


if __name__ == "__main__":
    uvloop.run(main())
