"""Journal fact: a retry was forwarded unmodified, so the reply may not match the version sent first.

The next answer may belong to either version, so the prompt to which its thinking is bound is unknown.
"""

from typing import Final

from pagein.model.entries import Body, NoteEntry, RequestSent

KIND: Final = "request.passed"
DATA: Final = "{}"


def is_passed(body: Body) -> bool:
    """Return whether an entry records an unmodified retry."""
    return isinstance(body, NoteEntry) and body.kind == KIND


def step(passed: bool, body: Body) -> bool:  # noqa: FBT001 -- a state
    """Return whether the last request was retried unmodified, after a further entry."""
    return False if isinstance(body, RequestSent) else passed or is_passed(body)
