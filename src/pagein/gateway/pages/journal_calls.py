"""The calls of a session, read from its journal. Pure: entries in, plain values out.

Rules of this file
------------------
1. A call is a request that was answered with usage. Requests without an answer are not counted.
2. What a request inherits, such as the model, comes from its own branch, so that sub-agents in one journal stay apart.
3. Cost and saving are at the newest prices of the model. Without a price the cost is None, and counts in no sum.
4. Branches share what is before their fork. An epoch, a saving and a recall are of the first call that counts them, and of no other.
5. What else was billed for a call is part of it: where the model went on after recalls, and keep-alive requests after it.
   Recalls are subtracted from the saving; the worth of a kept cache is in no saving, and so the price of keeping it is not either.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pagein.model.cache_notes import CacheMissNote
from pagein.model.entries import Entry, EntryId, EpochEntry, MessageEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import ClientNote, FurtherUsageNote, PrefixDigests, RecallNote, UsageNote
from pagein.model.messages import Message, UnreadableLine, Usage
from pagein.policy.clients.client_prompts import user_words
from pagein.providers.prices.price_lookup import cost, newest_prices

_LONGEST_TITLE: Final = 120


@dataclass(frozen=True, slots=True)
class JournalCall:
    """An answered call.

    at: time of the request in seconds since 1970; None if unknown.
    cost, usd: in BIT and in dollars; None without a price.
    saved: what pagein reckons to have saved with this call, in BIT; negative for an investment. Without the price of recalls.
    recalling, keeping: what going on after recalls and keep-alive requests cost, in BIT; within `cost`.
    epoch: reason of the epoch that it opened; "" for none.
    evicted, restored: results that left and came back with that epoch.
    evicted_tokens: tokens that left.
    recalls: recalls of stored texts since the call before.
    cause, who, explanation: why it missed the provider's cache, who is responsible, and a sentence; "" if it did not.
    shortfall: tokens missed.
    told: the provider's own reason for a miss; "" if it told none.
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
    recalling: float = 0.0
    keeping: float = 0.0
    cause: str = ""
    who: str = ""
    explanation: str = ""
    shortfall: int = 0
    told: str = ""

    @property
    def saved_usd(self) -> float:
        """The saving of the call in dollars; 0 without a price."""
        return self._dollars(self.saved)

    @property
    def recalling_usd(self) -> float:
        """The cost of the continuations after recalls in dollars; 0 without a price."""
        return self._dollars(self.recalling)

    def _dollars(self, bit: float) -> float:
        """Return BIT in dollars: a BIT costs the same in each part of a call."""
        return bit * self.usd / self.cost if self.usd is not None and self.cost else 0.0


@dataclass(frozen=True, slots=True)
class JournalSummary:
    """The title, client and calls of a session, from the journal.

    title: the first words of the user.
    client: the profile of the client; "" if unknown.
    calls: in the order of the journal.
    """

    title: str = ""
    client: str = ""
    calls: tuple[JournalCall, ...] = ()


@dataclass(frozen=True, slots=True)
class _BranchState:
    """The facts of a branch up to an entry.

    request, sent: the last request and its entry; None before the first. gained: what it saved.
    epoch: an epoch that the next request opens; opened: the one of the last request.
    recalls: the recalls since the last answered call.
    call: place of the last answered call among the calls; -1 before the first.
    """

    model: str = ""
    request: RequestSent | None = None
    sent: EntryId | None = None
    gained: float = 0.0
    epoch: EpochEntry | None = None
    opened: EpochEntry | None = None
    recalls: tuple[EntryId, ...] = ()
    call: int = -1

    @property
    def saved(self) -> float:
        """The session's saving up to the last request, in BIT."""
        return self.request.saved if self.request is not None else 0.0


_START: Final = _BranchState()


def summary_of(entries: Iterable[Entry | UnreadableLine]) -> JournalSummary:
    """Return the summary of a journal. Unreadable entries are left out."""
    states: dict[EntryId | None, _BranchState] = {None: _START}
    calls: list[JournalCall] = []
    counted: set[EntryId | None] = set()
    title = client = ""
    for entry in (one for one in entries if isinstance(one, Entry)):
        here = states.get(entry.parent, _START)
        match entry.body:
            case MessageEntry(message=message) if not title:
                title = _words_in(message)
            case EpochEntry() as epoch:
                here = replace(here, epoch=epoch)
            case RequestSent() as sent:
                gained = sent.saved - here.saved
                here = replace(here, request=sent, sent=entry.id, gained=gained, opened=here.epoch, epoch=None)
            case NoteEntry(note=RecallNote()):
                here = replace(here, recalls=(*here.recalls, entry.id))
            case NoteEntry(note=PrefixDigests(model=model)):
                here = replace(here, model=model or here.model)
            case NoteEntry(note=ClientNote(profile=profile)):
                client = client or profile
            case NoteEntry(note=UsageNote(usage=usage)):
                calls.append(_call(_uncounted(here, counted), usage))
                counted.update((*here.recalls, here.sent))
                here = replace(here, recalls=(), call=len(calls) - 1)
            case NoteEntry(note=FurtherUsageNote() | CacheMissNote() as told) if here.call >= 0:
                calls[here.call] = _with_note(calls[here.call], told)
            case _:
                pass
        states[entry.id] = here
    return JournalSummary(title, client, tuple(calls))


def first_words(entries: Iterable[Entry | UnreadableLine]) -> str:
    """Return the title of a session, and read its journal only so far; "" without words of the user."""
    bodies = (one.body for one in entries if isinstance(one, Entry))
    return next((words for one in bodies if isinstance(one, MessageEntry) and (words := _words_in(one.message))), "")


def _words_in(message: Message) -> str:
    return " ".join(user_words(message).split())[:_LONGEST_TITLE]


def _uncounted(state: _BranchState, counted: set[EntryId | None]) -> _BranchState:
    """Return the state without the savings and recalls that an earlier call already counted."""
    recalls = tuple(one for one in state.recalls if one not in counted)
    if state.sent in counted:
        state = replace(state, opened=None, gained=0.0)
    return replace(state, recalls=recalls)


def _call(state: _BranchState, usage: Usage) -> JournalCall:
    at = state.request.moment if state.request is not None else None
    paid = newest_prices(state.model)
    spent = cost(usage, paid, at) if paid is not None else None
    epoch = state.opened
    return JournalCall(
        at=at,
        model=state.model,
        usage=usage,
        cost=spent,
        usd=paid.usd(spent) if paid is not None and spent is not None else None,
        saved=state.gained,
        epoch=(epoch.reason or "epoch") if epoch is not None else "",
        evicted=len(epoch.paged) + len(epoch.turns) if epoch is not None else 0,
        restored=len(epoch.restored) if epoch is not None else 0,
        evicted_tokens=sum([*(one.tokens for one in epoch.paged), *(one.tokens for one in epoch.turns)])
        if epoch is not None
        else 0,
        recalls=len(state.recalls),
    )


def _with_note(call: JournalCall, told: FurtherUsageNote | CacheMissNote) -> JournalCall:
    """Return the call with a note of further usage or of a cache miss behind it."""
    if isinstance(told, CacheMissNote):
        why = told.words
        return replace(call, cause=told.cause, who=told.who, explanation=why, shortfall=told.tokens, told=told.told)
    reason, usage = told.reason, told.usage
    paid = newest_prices(call.model)
    whole = replace(call, usage=call.usage + usage)
    if paid is None or call.cost is None:
        return whole
    spent = cost(usage, paid, call.at)
    billed = replace(whole, cost=call.cost + spent, usd=paid.usd(call.cost + spent))
    match reason:
        case "recall":
            return replace(billed, recalling=call.recalling + spent, saved=call.saved - spent)
        case "keep_alive":
            return replace(billed, keeping=call.keeping + spent)
        case _:
            return billed
