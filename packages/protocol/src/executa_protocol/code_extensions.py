"""The rows of error codes of the field's chapters beyond the seeds.

No host of this project emits them: it answers such methods with
``UNMAPPED_METHOD`` (R-04). They are here so that an SDK which talks to another
host can name what it was told. Numbers and symbols are the field's.
"""

from typing import Final

from executa_protocol.code_table import Chapter, Disposition, Row


def _rows(chapter: Chapter, *rows: tuple[int, str, Disposition, str]) -> tuple[Row, ...]:
    return tuple(Row(n, symbol, chapter, how, advice, "field") for n, symbol, how, advice in rows)


CREDENTIALS: Final = _rows(
    "credentials",
    (-32061, "NOT_GRANTED", "terminal", "Ask the user to connect the account."),
    (-32062, "INVALID_REQUEST", "fix", "Correct the member that the message names."),
    (-32063, "UPSTREAM", "retry", "Try again after a pause: the account's provider failed."),
    (-32064, "TIMEOUT", "retry", "Try again: no credential came in time."),
)

IMAGE: Final = _rows(
    "image",
    (-32101, "NOT_GRANTED", "terminal", "Ask the user to enable images for this plugin."),
    (-32102, "QUOTA", "terminal", "Wait until the user's quota renews."),
    (-32103, "PROVIDER", "retry", "Try again after a pause: the model's provider failed."),
    (-32104, "INVALID", "fix", "Correct the member that the message names."),
    (-32105, "TIMEOUT", "retry", "Ask for fewer or smaller images, or try again."),
    (-32106, "MAX_IMAGES_EXCEEDED", "terminal", "Ask for fewer images in one invoke."),
    (-32107, "NOT_NEGOTIATED", "fix", "Name image in the answer to initialize."),
    (-32108, "USER_DENIED", "terminal", "Respect the user's answer and go on without images."),
    (-32109, "NO_MODEL_AVAILABLE", "terminal", "Have the user activate an image model."),
    (-32110, "STORAGE_ERROR", "retry", "Try again: the image could not be stored."),
    (-32311, "EDIT_NOT_SUPPORTED", "fix", "Choose a model that edits images."),
    (-32312, "MASK_UNSUPPORTED", "fix", "Leave the mask out or choose another model."),
    (-32313, "N_UNSUPPORTED", "fix", "Ask for one image a call."),
    (-32314, "REFERENCE_FETCH_FAILED", "fix", "Give reference URLs that can be fetched."),
)

VIDEO: Final = _rows(
    "video",
    (-32120, "NOT_GRANTED", "terminal", "Ask the user to enable video for this plugin."),
    (-32121, "QUOTA", "terminal", "Wait until the user's quota renews."),
    (-32122, "INVALID", "fix", "Correct the member that the message names."),
    (-32123, "PROVIDER", "retry", "Try again after a pause: the model's provider failed."),
    (-32124, "MODEL_UNAVAILABLE", "fix", "Choose another model."),
    (-32125, "JOB_NOT_FOUND", "fix", "Use the id of a job that still exists."),
    (-32126, "JOB_NOT_CANCELLABLE", "terminal", "Let the job end: it can no longer be stopped."),
    (-32127, "CONCURRENCY", "retry", "Wait until another job has ended."),
    (-32128, "CONTENT_REJECTED", "fix", "Change the prompt: its content was refused."),
)

AUDIO: Final = _rows(
    "audio",
    (-32140, "NOT_GRANTED", "terminal", "Ask the user to enable audio for this plugin."),
    (-32141, "QUOTA", "terminal", "Wait until the user's quota renews."),
    (-32142, "TEXT_TOO_LONG", "fix", "Send a shorter text."),
    (-32143, "TOO_LONG", "fix", "Send a shorter recording."),
    (-32144, "PROVIDER", "retry", "Try again after a pause: the model's provider failed."),
    (-32145, "VOICE_INVALID", "fix", "Choose a voice that the model has."),
    (-32146, "MODEL_UNAVAILABLE", "fix", "Choose another model."),
    (-32147, "CONTENT_REJECTED", "fix", "Change the text: its content was refused."),
)

UPLOAD: Final = _rows(
    "upload",
    (-32201, "NOT_GRANTED", "terminal", "Ask the user to enable uploads for this plugin."),
    (-32202, "QUOTA", "terminal", "Wait until the user's quota renews."),
    (-32203, "INVALID", "fix", "Correct the member that the message names."),
    (-32204, "TOO_LARGE", "fix", "Upload less: 8 MiB inline, 20 MiB by URL."),
    (-32205, "MIME_REJECTED", "fix", "Upload a type that is accepted: no SVG, no executables."),
    (-32206, "PURPOSE_REJECTED", "fix", "Use a purpose that the host knows."),
    (-32207, "STORAGE_ERROR", "retry", "Try again: the file could not be stored."),
    (-32208, "TIMEOUT", "retry", "Try again: the upload did not end in time."),
    (-32209, "USER_DENIED", "terminal", "Respect the user's answer and go on without uploads."),
    (-32210, "NOT_NEGOTIATED", "fix", "Name upload in the answer to initialize."),
    (-32211, "MAX_FILES_EXCEEDED", "terminal", "Upload fewer files in one invoke."),
    (-32212, "NOT_FOUND", "fix", "Use a key that a negotiated upload returned."),
    (-32213, "PRESIGN_FAILED", "retry", "Try again: no upload URL could be made."),
)

EMBEDDINGS: Final = _rows(
    "embeddings",
    (-32501, "NOT_GRANTED", "terminal", "Ask the user to enable embeddings for this plugin."),
    (-32502, "QUOTA", "terminal", "Wait until the user's quota renews."),
    (-32503, "PROVIDER", "retry", "Try again after a pause: the model's provider failed."),
    (-32504, "INVALID", "fix", "Correct the member that the message names."),
    (-32505, "TIMEOUT", "retry", "Send fewer texts a call or try again."),
    (-32506, "MAX_TOKENS", "fix", "Send fewer or shorter texts a call."),
    (-32507, "NOT_NEGOTIATED", "fix", "Name embeddings in the answer to initialize."),
    (-32508, "USER_DENIED", "terminal", "Respect the user's answer and go on without it."),
)

WEB: Final = _rows(
    "web",
    (-32521, "NOT_GRANTED", "terminal", "Ask the user to enable web access for this plugin."),
    (-32522, "QUOTA", "terminal", "Wait until the user's quota renews."),
    (-32523, "PROVIDER", "retry", "Try again after a pause: the search provider failed."),
    (-32524, "INVALID", "fix", "Correct the member that the message names."),
    (-32525, "TIMEOUT", "retry", "Ask for fewer pages or try again."),
    (-32526, "NOT_NEGOTIATED", "fix", "Name web in the answer to initialize."),
    (-32527, "USER_DENIED", "terminal", "Respect the user's answer and go on without the web."),
    (-32528, "TOKEN_EXPIRED", "retry", "Try again: the host renews the token."),
)

EXTENSION_ROWS: Final = (
    *CREDENTIALS, *IMAGE, *VIDEO, *AUDIO, *UPLOAD, *EMBEDDINGS, *WEB,
)  # fmt: skip
"""Every row of the chapters that this project knows but does not serve."""
