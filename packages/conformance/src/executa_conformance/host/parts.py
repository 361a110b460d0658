"""How a scripted plugin answers by itself: the handshake, its manifest, or nothing at all."""

from typing import Any, Final

from executa_conformance.host.life import Frame, Handler, Life, Request

TOOL: Final = {
    "name": "echo",
    "description": "Says what it was told.",
    "parameters": [
        {"name": "text", "type": "string", "description": "What to say.", "required": False}
    ],
}


def handshake(**changes: Any) -> Handler:
    """Answers initialize, with members of the result changed; those that are None are left out."""
    result = {
        "protocolVersion": "2.0",
        "server_info": {"name": "scripted", "version": "1.0.0"},
        "capabilities": {},
    } | changes
    kept = {name: value for name, value in result.items() if value is not None}

    def handle(life: Life, request: Request) -> None:
        life.say({"jsonrpc": "2.0", "id": request.id, "result": kept}, wrong=bool(changes))

    return handle


def error(code: int, message: str = "refused on purpose") -> Handler:
    """Answers with an error."""

    def handle(life: Life, request: Request) -> None:
        life.fail(request, code, message)

    return handle


def silence(life: Life, request: Request) -> None:
    """Does not answer."""


def described(manifest: Any, *, wrong: bool = True) -> Handler:
    """Answers describe with this."""

    def handle(life: Life, request: Request) -> None:
        life.say({"jsonrpc": "2.0", "id": request.id, "result": manifest}, wrong=wrong)

    return handle


def manifest_of(capabilities: tuple[str, ...] = (), **members: Any) -> Frame:
    """A manifest with one tool."""
    base = {"name": "scripted", "version": "1.0.0", "description": "The kit's.", "tools": [TOOL]}
    declared = {"host_capabilities": list(capabilities)} if capabilities else {}
    return {**base, **declared, **members}
