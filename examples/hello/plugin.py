"""The smallest useful plugin: three ways to write a tool, and a call back to the host."""

from typing import Literal

from executa_sdk import Context, Plugin, SyncContext, ToolError

plugin = Plugin("hello", "0.1.0", description="Greets people, with and without a model.")


@plugin.tool(effect="read", inline=True)
def greet(name: str, style: Literal["plain", "loud"] = "plain") -> str:
    """Greet someone.

    Args:
        name: Whom to greet.
        style: How to say it.
    """
    if not name.strip():
        raise ToolError("nobody to greet")
    text = f"Hello, {name}!"
    return text.upper() if style == "loud" else text


@plugin.tool
def count(name: str, ctx: SyncContext) -> int:
    """Greet someone and say how often that has happened.

    Args:
        name: Whom to greet.
    """
    return ctx.storage.tool.update(f"greeted/{name}", lambda times: times + 1, default=0)


@plugin.tool(effect="read")
async def welcome(name: str, ctx: Context) -> str:
    """Have a model write a welcome.

    Args:
        name: Whom to welcome.
    """
    answer = await ctx.sample(f"Welcome {name} in one sentence.", max_tokens=60)
    return answer.text


if __name__ == "__main__":
    plugin.run()
