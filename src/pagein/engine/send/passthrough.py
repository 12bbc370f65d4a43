"""That a request which was sent before went out again as its client sent it: journaled behind the one that was sent.

Nobody can say then which of the two the next answer is for, so its thinking is bound to a prompt that is not known.
"""

from typing import Final

from pagein.model.entries import Body, NoteEntry, RequestSent

KIND: Final = "request.passed"
DATA: Final = "{}"


def is_passed(body: Body) -> bool:
    """Whether an entry says so."""
    return isinstance(body, NoteEntry) and body.kind == KIND


def step(passed: bool, body: Body) -> bool:  # noqa: FBT001 -- a state
    """Whether the request that was sent last was passed since, after one more entry."""
    return False if isinstance(body, RequestSent) else passed or is_passed(body)
