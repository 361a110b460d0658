"""What a tool raises to say that it failed, as opposed to crashed.

The exceptions of reverse calls and of local misuse are those of `executa_protocol.errors`.
"""

from typing import Any

from executa_protocol.errors import ExecutaError


class ToolError(ExecutaError):
    """A failure in the tool's own domain, in words for whoever called it.

    The call is answered with ``success: false``, the message as `error`, and `data`
    beside it unless it is None. Anything else that a tool raises is a crash: the caller
    gets -32603 and the traceback goes to stderr.
    """

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data
