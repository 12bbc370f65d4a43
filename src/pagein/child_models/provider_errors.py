"""Name failed calls of child models by who must act.

A provider may repeat a key in its refusal. Every message therefore goes through the same removal of keys as a log line.
"""

from typing import Final

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UserError,
)

from pagein.errors import (
    BrokenConnection,
    ChildModelError,
    Overloaded,
    RefusedKey,
    RefusedRequest,
    UnknownModel,
    UnsupportedCall,
)
from pagein.policy.privacy.secrets import keys_in

_LONGEST: Final = 400
_BUSY: Final = (429, 503, 529)
_STREAM: Final = ("streaming is required", "stream must be set to true", "only supports stream", "requires streaming")
_FAILED: Final = 500


def child_error(problem: BaseException, model: str) -> ChildModelError | None:
    """Return the error that a failed call stands for; None for a failure that is a bug.

    model: as named by the caller.
    """
    words = _without_keys(_words(problem))
    asks_for_stream = any(sign in words.lower() for sign in _STREAM)
    match problem:
        case _ if asks_for_stream:
            return UnsupportedCall(f"{model} answers only in a stream: {words}")
        case ModelAuthenticationError():
            return RefusedKey(f"the provider of {model} refused the key: {words}")
        case ModelNotFoundError():
            return UnknownModel(f"the provider has no model {model}: {words}")
        case ModelQuotaExceededError():
            return RefusedRequest(f"the account for {model} has no quota left: {words}")
        case ModelRateLimitError() | ModelUnavailableError():
            return Overloaded(f"{model} is overloaded: {words}", problem.retry_after)
        case ModelHTTPError(status_code=status) if status in _BUSY:
            return Overloaded(f"{model} is overloaded: {words}", problem.retry_after)
        case ModelConnectionError() | ModelServerError():
            return BrokenConnection(f"the connection to {model} failed: {words}")
        case ModelHTTPError(status_code=status) if status >= _FAILED:
            return BrokenConnection(f"the provider of {model} failed: {words}")
        case ContentFilterError() | ModelAPIError():
            return RefusedRequest(f"the provider refused the request to {model}: {words}")
        case UnexpectedModelBehavior():
            return BrokenConnection(f"the answer of {model} could not be read: {words}")
        case NotImplementedError():
            return UnsupportedCall(f"{model} cannot be called like this: {words}")
        case UserError():
            return RefusedRequest(f"{model} cannot be called: {words}")
    return None


def _words(problem: BaseException) -> str:
    """Return what the provider said, without the frame that the library puts around it."""
    body = getattr(problem, "body", None)
    if isinstance(body, dict):
        error = body.get("error", body)
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            return str(error["message"])
    return str(getattr(problem, "message", "") or problem or type(problem).__name__)


def _without_keys(words: str) -> str:
    for span in reversed(keys_in(words)):
        words = f"{words[: span.start]}[key]{words[span.end :]}"
    return words if len(words) <= _LONGEST else words[:_LONGEST] + " ..."
