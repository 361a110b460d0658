"""A plugin whose tools wait for one reverse call, a storage look-up that takes its time."""

from executa_sdk import Context, Plugin, SyncContext

plugin = Plugin("waiting", "0.1.0")


@plugin.tool
async def wait_task(number: int, ctx: Context) -> int:
    """Wait in a coroutine."""
    await ctx.storage.tool.get("nothing")
    return number


@plugin.tool
def wait_thread(number: int, ctx: SyncContext) -> int:
    """Wait in a thread."""
    ctx.storage.tool.get("nothing")
    return number


if __name__ == "__main__":
    plugin.run()
