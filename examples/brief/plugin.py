"""An Executa plugin that briefs a text file: sampling, an agent session, and a look at the gate."""

from pathlib import Path
from typing import Any

from executa_sdk import Context, Plugin, RpcError, ToolError

plugin = Plugin(
    "brief",
    "0.1.0",
    description="Summarizes a text file and answers a question about it.",
    # Stated rather than derived, because `overreach` asks for what is not declared.
    host_capabilities=["llm.sample", "llm.agent.auto"],
)

MOST_PIECES = 6
PIECE_CHARS = 4_000
MOST_CHARS_A_PIECE = 100_000


@plugin.tool(timeout=300)
async def brief(path: str, question: str, ctx: Context) -> dict[str, Any]:
    """Summarize a text file, then answer a question with the help of the user's notes.

    Args:
        path: The file to read.
        question: What to answer in the end.
    """
    text = _read(path)
    pieces = split(text)
    summary: list[str] = []
    for number, piece in enumerate(pieces, start=1):
        await ctx.progress(number - 1, len(pieces), f"piece {number}")
        answer = await ctx.sample(f"Summarize in two sentences:\n\n{piece}", max_tokens=120)
        summary.append(answer.text.strip())
    await ctx.progress(len(pieces), len(pieces), "asking")
    frames = 0
    calls: list[str] = []
    answer_text = ""
    async with await ctx.agent(label="brief") as agent:
        prompt = (
            f'Look up "{question}" with the tool notebook.recall, then answer it from the '
            f"result and from this summary:\n\n{' '.join(summary)}"
        )
        async for frame in agent.run(prompt):
            frames += 1
            if frame["event"] == "tool_call":
                calls.append(frame["name"])
            elif frame["event"] == "final":
                answer_text = frame["text"]
    return {
        "characters": len(text),
        "pieces": len(pieces),
        "summary": " ".join(summary),
        "answer": answer_text,
        "frames": frames,
        "tools_called": calls,
    }


@plugin.tool
async def gist(text: str, ctx: Context) -> str:
    """Say in one sentence what a text is about.

    Args:
        text: The text.
    """
    return await ctx.complete(f"Summarize in one sentence:\n\n{text}", max_tokens=60)


@plugin.tool
async def overreach(ctx: Context) -> dict[str, Any]:
    """Ask for storage, which this plugin does not declare, and tell how the host answers."""
    try:
        await ctx.storage.user.get("notes")
    except RpcError as refusal:
        return {"refused": True, "code": refusal.code, "missing": refusal.data.get("missing")}
    return {"refused": False}


def split(text: str) -> list[str]:
    """At most six pieces of about equal length, cut between paragraphs where there are any."""
    size = max(PIECE_CHARS, -(-len(text) // MOST_PIECES))
    pieces: list[str] = []
    rest = text
    while rest and len(pieces) < MOST_PIECES - 1 and len(rest) > size:
        cut = rest.rfind("\n\n", size // 2, size)
        cut = cut if cut > 0 else size
        pieces.append(rest[:cut])
        rest = rest[cut:]
    pieces.append(rest)
    # A book is briefed from the beginning of each sixth: a frame has a size, too.
    return [piece.strip()[:MOST_CHARS_A_PIECE] for piece in pieces if piece.strip()]


def _read(path: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as fault:
        raise ToolError(f"{path} cannot be read: {fault.strerror}") from fault
    if not text.strip():
        raise ToolError(f"{path} is empty")
    return text


if __name__ == "__main__":
    plugin.run()
