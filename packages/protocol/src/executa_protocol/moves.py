"""The exception that every transition table raises.

Tables themselves are data beside the states they move: `lifecycle`, `actions`,
`sessions`.
"""

from executa_protocol.errors import UsageError


class IllegalMove(UsageError):
    """`old` cannot become, or be told, `new`. Nothing was changed.

    `subject` names what has the state: plugin, action or session.
    """

    def __init__(self, subject: str, old: str, new: str, why: str = "") -> None:
        super().__init__(f"{subject}: {old} -> {new} is not a legal move{why and f': {why}'}")
        self.subject = subject
        self.old = old
        self.new = new
