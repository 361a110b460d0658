"""What each refusal of the HTTP API means, and what helps. A test holds the table complete."""

from typing import Final

CODES: Final[dict[str, tuple[int, str]]] = {
    # The request
    "INVALID_REQUEST": (400, "Correct the member or parameter that `path` names."),
    "INVALID_INPUT": (400, "Make the input fit the capability's contract; `path` says where."),
    "UNKNOWN_CAPABILITY": (400, "Check the name, PLUGIN.TOOL; `/v1/capabilities` lists them."),
    "MODE_NOT_OFFERED": (400, "Use a mode that the capability's contract offers (R-52)."),
    "OUT_OF_RANGE": (400, "Stay within the bounds that the message names."),
    "CURSOR_INVALID": (400, "Use a cursor exactly as an answer or event gave it."),
    "CURSOR_AHEAD": (400, "Use a cursor of this log: this one lies behind its end."),
    "CALLBACK_REFUSED": (400, "Use an address that the host's settings allow, with TLS."),
    "BAD_HTTP": (400, "Send well-formed HTTP/1.1."),
    # Who asks
    "UNAUTHENTICATED": (401, "Send a valid key: `Authorization: Bearer KEY`."),
    "FORBIDDEN": (403, "Use a key with the scope that the endpoint needs."),
    "DELEGATION_REFUSED": (403, "Act only for subjects that the settings delegate to you."),
    "APPROVAL_NOT_YOURS": (403, "Let one of the approvers decide."),
    # What is asked for
    "UNKNOWN_ROUTE": (404, "Check the path."),
    "UNKNOWN_ACTION": (404, "Check the id; one that is not yours looks the same (R-41)."),
    "UNKNOWN_SESSION": (404, "Check the id; one that is not yours looks the same."),
    "UNKNOWN_PLUGIN": (404, "Check the plugin's name in the host's configuration."),
    "RESUME_UNKNOWN": (404, "Attach to the session anew: this token was never issued."),
    "METHOD_NOT_ALLOWED": (405, "Use a method that `Allow` names."),
    "BODY_TOO_SLOW": (408, "Send the body faster; it was not read to its end."),
    # The state it is in
    "IDEMPOTENCY_CONFLICT": (409, "Use a new key: this one stands for another request (R-43)."),
    "NOT_PENDING_APPROVAL": (409, "Nothing to decide: the action awaits no approval."),
    "ALREADY_DECIDED": (409, "Read the action: somebody has decided otherwise."),
    "CONTENT_CHANGED": (409, "Look at the action again, and decide about what it is now."),
    "NOT_DEAD_LETTERED": (409, "Redrive only what is dead-lettered."),
    "SESSION_ENDED": (409, "Open a new session: this one takes no more."),
    "ILLEGAL_MOVE": (409, "Read the action: its state does not allow this."),
    "RESUME_CONFLICT": (409, "Repeat a resume only with the same attempt id and cursor (R-50)."),
    "PLUGIN_NOT_STARTED": (409, "Call the plugin first, or look why it cannot start."),
    # What is gone
    "REMOVED": (410, "Nothing: retention has removed it."),
    "CURSOR_GONE": (410, "Start anew from the record: events before it are removed."),
    "RESUME_SPENT": (410, "Use the newest token, or attach anew; the session's tokens are void."),
    "RESUME_REVOKED": (410, "Attach to the session anew."),
    # How it is sent
    "BODY_TOO_LARGE": (413, "Send less; large content belongs into a file or storage."),
    "UNSUPPORTED_MEDIA_TYPE": (415, "Send `Content-Type: application/json`."),
    # The host
    "INTERNAL": (500, "Look into the host's log; the answer tells no details."),
    "CAPABILITY_UNAVAILABLE": (503, "Try again later: the plugin cannot be started now."),
    "QUEUE_FULL": (503, "Try again later: too many actions are open."),
    "DRAINING": (503, "Try again when the host is back: it is stopping."),
    "CLOSING": (503, "Connect again: the server closes."),
    "KEYS_UNREADABLE": (503, "Repair the key file beside the store; its owner can read why."),
}
"""Status and advice by symbol, by status."""
