"""Journal fact: a retry was forwarded unmodified, so the reply may not match the version sent first.

The next answer may belong to either version, so the prompt to which its thinking is bound is unknown.
"""

from pagein.model.entries import Body, NoteEntry, RequestSent
from pagein.model.journal_notes import PassthroughNote


def step(passed: bool, body: Body) -> bool:  # noqa: FBT001 -- a state
    """Return whether the last request was retried unmodified, after a further entry."""
    match body:
        case RequestSent():
            return False
        case NoteEntry(note=PassthroughNote()):
            return True
        case _:
            return passed
