"""The last answered request of each branch, as the journal has it: for a call whose predecessor another process sent."""

from dataclasses import dataclass, replace
from typing import Final

from pagein.engine.log.journal import Fold, Journal
from pagein.engine.log.state import State
from pagein.model.entries import Body, NoteEntry, RequestSent
from pagein.model.journal_notes import PrefixDigests, UsageNote
from pagein.model.messages import Usage


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """An answered request.

    usage: as the provider reported it.
    answer: the provider's name of the answer; "" if it was not journaled.
    head: digests of the prompt prefix.
    at: time of the request, in seconds since 1970; None if unknown.
    """

    usage: Usage
    answer: str
    head: PrefixDigests
    at: float | None


@dataclass(frozen=True, slots=True)
class RequestTrail:
    """The last request of a branch, and the last that was answered; None before the first."""

    head: PrefixDigests
    at: float | None = None
    answered: AnsweredRequest | None = None


_START: Final = RequestTrail(PrefixDigests())


def answered_requests(journal: Journal[State]) -> Fold[RequestTrail]:
    """Return the trail at each entry of a journal."""
    return Fold(journal, _START, _step, "answered", takes=(PrefixDigests, RequestSent, UsageNote))


def _step(trail: RequestTrail, body: Body) -> RequestTrail:
    match body:
        case NoteEntry(note=PrefixDigests() as head):
            return replace(trail, head=head)
        case RequestSent(moment=at):
            return replace(trail, at=at)
        case NoteEntry(note=UsageNote(usage=usage, answer=answer)):
            return replace(trail, answered=AnsweredRequest(usage, answer, trail.head, trail.at))
        case _:
            return trail
