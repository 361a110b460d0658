"""A plugin whose tool makes one sampling call of its own for each invoke."""

from executa_sdk import Context, Plugin

plugin = Plugin("sampler", "0.1.0")


@plugin.tool
async def ask(number: int, ctx: Context) -> dict[str, str | int]:
    """Have a sentence about a number summarized; the answer holds that number and no other."""
    answer = await ctx.sample(f"Summarize: The number of this call is {number}.", max_tokens=40)
    return {"number": number, "text": answer.text}


if __name__ == "__main__":
    plugin.run()
