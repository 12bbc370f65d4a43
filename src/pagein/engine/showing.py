"""Requests of a journal as they were sent: what of each stood otherwise than the client said it. Told by the journal alone.

A request is looked at behind the one before it on its branch; a few that were looked at last are remembered.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pagein.engine.chain import Unit
from pagein.engine.folds import Fold
from pagein.engine.heads import Head
from pagein.engine.journal import Journal
from pagein.engine.splicing import NOTHING_RENDERED, Rendered, Splicer, Window, rendered
from pagein.engine.state import State
from pagein.model.entries import Compacted, EntryId, EpochOpened, RequestSent
from pagein.providers.abilities import abilities
from pagein.providers.validity import Api

_REMEMBERED: Final = 32


@dataclass(frozen=True, slots=True)
class Shown:
    """A request, and what puts its changes into bytes. before: one before it on its branch; since: up to this message it is as that."""

    rendered: Rendered
    splicer: Splicer
    before: Rendered
    since: int


class Showing:
    """The requests of one journal. Called by one thread at a time."""

    def __init__(self, journal: Journal[State], heads: Fold[Head]) -> None:
        self._journal = journal
        self._heads = heads
        self._known: OrderedDict[EntryId, tuple[Rendered, Splicer]] = OrderedDict()

    def at(self, entry: EntryId, units: Sequence[Unit], api: Api) -> "Shown":
        """The request that was sent at this entry, whose conversation these are."""
        requests, nearest = self._behind_known(entry)
        before, splicer = self._known[nearest] if nearest is not None else (NOTHING_RENDERED, Splicer())
        known, since = before, len(units)
        base = self._journal.state_at(entry).draft.said - len(units)
        for name, epoch in requests:
            state = self._journal.state_at(name)
            binds = epoch is not None and binds_thinking(self._heads.at(name), api)
            takes = epoch is not None and epoch.thought is not None
            window = Window(state.sent, state.draft.said, epoch is not None, binds, takes)
            before = rendered(window, units[: state.draft.said - base], before)
            since = min(since, before.since)
        self._known[entry] = before, splicer
        self._known.move_to_end(entry)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return Shown(before, splicer, known, since)

    def _behind_known(self, entry: EntryId) -> tuple[list[tuple[EntryId, EpochOpened | None]], EntryId | None]:
        """The requests up to this one that are not remembered, each with the epoch that was opened for it; and what they follow."""
        found: list[tuple[EntryId, EpochOpened | None]] = []
        here: EntryId | None = entry
        while here is not None and here not in self._known:
            one = self._journal.entry(here)
            if isinstance(one.body, Compacted):
                here = None
                break
            if isinstance(one.body, RequestSent):
                found.append((here, None))
            elif isinstance(one.body, EpochOpened) and found:
                found[-1] = (found[-1][0], one.body)
            here = one.parent
        found.reverse()
        return found, here


def binds_thinking(head: Head, api: Api) -> bool:
    """Whether thinking must be taken for bound to what stands before it."""
    return api == "anthropic" and abilities(head.model or None).may_bind


def carries_thinking(head: Head, api: Api) -> bool:
    """Whether the model is known to be shown again what it thought in finished turns, in blocks that may be left out."""
    return api == "anthropic" and abilities(head.model or None).carries_thinking
