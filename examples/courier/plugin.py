"""An Executa plugin for durable actions: what streams, what needs approval, what waits."""

import asyncio
from typing import Any

from executa_sdk import Context, Plugin

plugin = Plugin(
    "courier",
    "0.1.0",
    description="Carries parcels, pays for them, and waits at doors.",
)

MOMENT = 0.04
"""Seconds that one parcel takes."""


# Carrying again what was carried changes nothing, so a host that crashed may simply try again.
@plugin.tool(effect="idempotent", streaming=True)
async def carry(parcels: int, ctx: Context) -> dict[str, Any]:
    """Carry parcels, one after the other.

    Args:
        parcels: How many.
    """
    for number in range(1, parcels + 1):
        await asyncio.sleep(MOMENT)
        await ctx.progress(number, parcels, f"parcel {number}")
    return {"carried": parcels}


# Paying twice is not the same as paying once: never repeated, and a person decides first.
@plugin.tool(effect="mutating", approval=True)
def pay(amount: float, recipient: str) -> dict[str, Any]:
    """Pay somebody.

    Args:
        amount: How much, in whole or broken coins.
        recipient: Who gets it.
    """
    return {"paid": amount, "recipient": recipient}


@plugin.tool(effect="read", streaming=True)
async def wait(door: str, ctx: Context) -> str:
    """Wait at a door that nobody opens; it ends when it is cancelled.

    Args:
        door: Which one.
    """
    await ctx.progress(0, 1, f"waiting at the {door}")
    await asyncio.Event().wait()
    return door


if __name__ == "__main__":
    plugin.run()
