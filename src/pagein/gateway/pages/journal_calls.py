"""The calls of a session, read from its journal. Pure: entries in, plain values out.

Rules of this file
------------------
1. A call is a request that was answered with usage. Requests without an answer are not counted.
2. What a request inherits, such as the model, comes from its own branch, so that sub-agents in one journal stay apart.
3. Cost and saving are at the newest prices of the model. Without a price the cost is None, and counts in no sum.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pagein.model.entries import Entry, EntryId, EpochEntry, MessageEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import ClientNote, PrefixDigests, RecallNote, UsageNote
from pagein.model.messages import Text, UnreadableLine, Usage
from pagein.providers.prices.price_lookup import cost, newest_prices

_LONGEST_TITLE: Final = 120


@dataclass(frozen=True, slots=True)
class JournalCall:
    """An answered call.

    at: time of the request in seconds since 1970; None if unknown.
    cost, usd: in BIT and in dollars; None without a price.
    saved: what pagein reckons to have saved with this call, in BIT; negative for an investment.
    epoch: reason of the epoch that it opened; "" for none.
    evicted, restored: results that left and came back with that epoch.
    evicted_tokens: tokens that left.
    recalls: recalls of stored texts since the call before.
    """

    at: float | None
    model: str
    usage: Usage
    cost: float | None
    usd: float | None
    saved: float
    epoch: str = ""
    evicted: int = 0
    restored: int = 0
    evicted_tokens: int = 0
    recalls: int = 0


@dataclass(frozen=True, slots=True)
class JournalSummary:
    """What a journal tells of its session.

    title: the first words of the user.
    client: the profile of the client; "" if unknown.
    calls: in the order of the journal.
    """

    title: str = ""
    client: str = ""
    calls: tuple[JournalCall, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """What a branch has told up to an entry.

    request: the last request; None before the first. saved: its running saving.
    epoch: an epoch that the next request opens; opened: the one of the last request.
    recalls: since the last answered call.
    """

    model: str = ""
    request: RequestSent | None = None
    gained: float = 0.0
    epoch: EpochEntry | None = None
    opened: EpochEntry | None = None
    recalls: int = 0


_START: Final = _Place()


def summary_of(entries: Iterable[Entry | UnreadableLine]) -> JournalSummary:
    """Return what a journal tells of its session. Entries that cannot be read are left out."""
    places: dict[EntryId | None, _Place] = {None: _START}
    calls: list[JournalCall] = []
    title = client = ""
    for entry in entries:
        if not isinstance(entry, Entry):
            continue
        here = places.get(entry.parent, _START)
        match entry.body:
            case MessageEntry(message=message) if not title and message.role == "user":
                words = " ".join(one.text for one in message.blocks if isinstance(one, Text) and not one.injected)
                title = " ".join(words.split())[:_LONGEST_TITLE]
            case EpochEntry() as epoch:
                here = replace(here, epoch=epoch)
            case RequestSent() as sent:
                before = here.request.saved if here.request is not None else 0.0
                here = replace(here, request=sent, gained=sent.saved - before, opened=here.epoch, epoch=None)
            case NoteEntry(note=RecallNote()):
                here = replace(here, recalls=here.recalls + 1)
            case NoteEntry(note=PrefixDigests(model=model)):
                here = replace(here, model=model or here.model)
            case NoteEntry(note=ClientNote(profile=profile)):
                client = client or profile
            case NoteEntry(note=UsageNote(usage=usage)):
                calls.append(_call(here, usage))
                here = replace(here, recalls=0, opened=None, gained=0.0)
            case _:
                pass
        places[entry.id] = here
    return JournalSummary(title, client, tuple(calls))


def _call(place: _Place, usage: Usage) -> JournalCall:
    at = place.request.moment if place.request is not None else None
    paid = newest_prices(place.model)
    spent = cost(usage, paid, at) if paid is not None else None
    epoch = place.opened
    return JournalCall(
        at=at,
        model=place.model,
        usage=usage,
        cost=spent,
        usd=paid.usd(spent) if paid is not None and spent is not None else None,
        saved=place.gained,
        epoch=(epoch.reason or "epoch") if epoch is not None else "",
        evicted=len(epoch.paged) + len(epoch.turns) if epoch is not None else 0,
        restored=len(epoch.restored) if epoch is not None else 0,
        evicted_tokens=sum([*(one.tokens for one in epoch.paged), *(one.tokens for one in epoch.turns)])
        if epoch is not None
        else 0,
        recalls=place.recalls,
    )
