"""Name failed calls of child models by who must act.

A provider may repeat a key in its refusal. Keys are therefore taken out of every message.
"""

from collections.abc import Collection
from typing import Final, TypeAlias

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
    OverloadedProvider,
    RefusedKey,
    RefusedRequest,
    UnknownModel,
    UnsupportedCall,
)
from pagein.policy.privacy.sent_keys import without_keys

_Meaning: TypeAlias = tuple[type[Exception] | tuple[type[Exception], ...], type[ChildModelError], str]

_MEANINGS: Final[tuple[_Meaning, ...]] = (
    (ModelAuthenticationError, RefusedKey, "the provider of {model} refused the key: {words}"),
    (ModelNotFoundError, UnknownModel, "the provider has no model {model}: {words}"),
    (ModelQuotaExceededError, RefusedRequest, "the account for {model} has no quota left: {words}"),
    ((ModelConnectionError, ModelServerError), BrokenConnection, "the connection to {model} failed: {words}"),
    ((ContentFilterError, ModelHTTPError), RefusedRequest, "the provider refused the request to {model}: {words}"),
    ((ModelAPIError, UnexpectedModelBehavior), BrokenConnection, "the answer of {model} could not be read: {words}"),
    (NotImplementedError, UnsupportedCall, "{model} cannot be called like this: {words}"),
    (UserError, RefusedRequest, "{model} cannot be called: {words}"),
)
"""Failures and what they stand for. The first row that fits counts."""
_LONGEST: Final = 400
_BUSY: Final = (429, 503, 529)
_STREAM: Final = ("streaming is required", "stream must be set to true", "only supports stream", "requires streaming")
_FAILED: Final = 500
_UNSENT: Final = ("ConnectError", "ConnectTimeout")


def child_error(problem: BaseException, model: str, sent: Collection[str] = ()) -> ChildModelError | None:
    """Return the error for a failed call; None for a bug.

    model: as named by the caller. sent: the keys that the calls were sent with.
    """
    words = without_keys(_words(problem), sent)
    words = words if len(words) <= _LONGEST else words[:_LONGEST] + " ..."
    if any(sign in words.lower() for sign in _STREAM):
        return UnsupportedCall(f"{model} answers only in a stream: {words}")
    status = problem.status_code if isinstance(problem, ModelHTTPError) else 0
    if status in _BUSY or isinstance(problem, ModelRateLimitError | ModelUnavailableError):
        return OverloadedProvider(f"{model} is overloaded: {words}", getattr(problem, "retry_after", None))
    if status >= _FAILED:
        return BrokenConnection(f"the provider of {model} failed: {words}", was_sent=False)
    if isinstance(problem, ModelConnectionError) and _is_unsent(problem):
        return BrokenConnection(f"there is no connection to {model}: {words}", was_sent=False)
    for kinds, error, says in _MEANINGS:
        if isinstance(problem, kinds):
            return error(says.format(model=model, words=words))
    return None


def _is_unsent(problem: BaseException) -> bool:
    """Return whether the connection was never made. Each library wraps that error in an error of its own."""
    cause: BaseException | None = problem
    while cause is not None:
        if type(cause).__name__ in _UNSENT:
            return True
        cause = cause.__cause__
    return False


def _words(problem: BaseException) -> str:
    """Return the provider's message, without the library's frame."""
    body = getattr(problem, "body", None)
    if isinstance(body, dict):
        error = body.get("error", body)
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            return str(error["message"])
    return str(getattr(problem, "message", "")) or str(problem) or type(problem).__name__
