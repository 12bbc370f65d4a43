"""Reconstruct sent requests from the journal: how each differed from the client's messages.

A request is computed from the request before on its branch; the most recently used ones are remembered.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from pagein.engine.intake.message_chain import Unit
from pagein.engine.intake.recall_tools import Settled
from pagein.engine.log.folds import Fold
from pagein.engine.log.journal import Journal
from pagein.engine.log.state import State
from pagein.engine.send.splice import (
    NOTHING_RENDERED,
    HiddenExchange,
    RenderedWindow,
    SentWindow,
    Splicer,
    render_window,
)
from pagein.model.entries import CompactionEntry, EntryId, EpochEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import BrokenNote, ForgottenNote, PassthroughNote, PrefixDigests, ToolsNote
from pagein.providers.prices.model_abilities import abilities
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named

_REMEMBERED: Final = 32


@dataclass(frozen=True, slots=True)
class SentView:
    """A sent request, and the splicer for its changes.

    before: an earlier request on its branch.
    since: first message that may differ from `before`.
    """

    rendered: RenderedWindow
    splicer: Splicer
    before: RenderedWindow
    since: int


@dataclass(frozen=True, slots=True)
class WindowLayout:
    """The window of a request beside the client's messages.

    view: the window, as it differs from them.
    stood: hidden recall exchanges, by the number of the client's merged answer.
    """

    view: SentView
    stood: Mapping[int, HiddenExchange]


class SentHistory:
    """The sent requests of one journal. Not thread-safe."""

    def __init__(self, journal: Journal[State], heads: Fold[PrefixDigests], settled: Fold[Settled]) -> None:
        self._journal = journal
        self._heads = heads
        self._settled = settled
        self._known: OrderedDict[EntryId, tuple[RenderedWindow, Splicer]] = OrderedDict()
        journal.on_take_back(self._take_back)
        kept = None if journal.restored is None else journal.restored.states.get("shown")
        if journal.restored is not None and kept is not None:
            splicer = Splicer()
            splicer.restore((kept["rendered"], kept["stood"]), kept["made"])
            self._known[journal.restored.leaf] = kept["rendered"], splicer

    def snapshot_values(self, entry: EntryId) -> Mapping[str, Any] | None:
        """Return the remembered values of a request, for a later process.

        None if the request is not remembered.
        """
        rendered, splicer = self._known.get(entry, (NOTHING_RENDERED, Splicer()))
        if splicer.basis is None or splicer.basis[0] is not rendered:
            return None
        return {"rendered": rendered, "stood": dict(splicer.basis[1]), "made": splicer.snapshot_values()}

    def at(self, entry: EntryId, units: Sequence[Unit], api: Api, apart: int | None = None) -> "SentView":
        """Return the request that was sent at this entry.

        units: its conversation.
        apart: first message that replaces a hidden exchange; None if absent.
        """
        requests, nearest = self._behind_known(entry)
        before, splicer = self._known[nearest] if nearest is not None else (NOTHING_RENDERED, Splicer())
        known, since = before, len(units)
        base = self._journal.state_at(entry).draft.said - len(units)
        for one in requests:
            state = self._journal.state_at(one.name)
            binds = binds_thinking(self._heads.at(one.name), api)
            has_tools = binds and isinstance(tools := self._settled.at(one.name), tuple) and bool(tools)
            window = SentWindow(
                state.sent,
                state.draft.said,
                one.epoch is not None,
                binds,
                one.epoch is not None and one.epoch.thought is not None,
                one.begun,
                -1 if has_tools else apart,
                one.passed,
            )
            before = render_window(window, units[: state.draft.said - base], before)
            since = min(since, before.since)
        self._known[entry] = before, splicer
        self._known.move_to_end(entry)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return SentView(before, splicer, known, since)

    def _take_back(self, gone: Sequence[EntryId]) -> None:
        for name in gone:
            self._known.pop(name, None)

    def _behind_known(self, entry: EntryId) -> tuple[list["_Request"], EntryId | None]:
        """Return the requests up to an entry that are not remembered, and the remembered request before."""
        found: list[_Request] = []
        here: EntryId | None = entry
        while here is not None and here not in self._known:
            one = self._journal.entries.get(here) or self._journal.entry(here)
            here = one.parent
            match one.body:
                case CompactionEntry():
                    here = None
                    break
                case RequestSent():
                    found.append(_Request(one.id))
                case EpochEntry() as epoch if found:
                    found[-1] = replace(found[-1], epoch=epoch)
                case NoteEntry(note=ToolsNote() | ForgottenNote() | BrokenNote()) if found:
                    found[-1] = replace(found[-1], begun=True)  # earlier thinking is not bound to the prompt
                case NoteEntry(note=PassthroughNote()) if found:
                    found[-1] = replace(found[-1], passed=True)
        found.reverse()
        return found, here


@dataclass(frozen=True, slots=True)
class _Request:
    """A request of a branch.

    epoch: the epoch opened for it; None if absent.
    begun: True if recall tools entered with it.
    passed: True if the request before it was retried unmodified.
    """

    name: EntryId
    epoch: EpochEntry | None = None
    begun: bool = False
    passed: bool = False


@lru_cache(maxsize=64)
def binds_thinking(head: PrefixDigests, api: Api) -> bool:
    """Return whether thinking must count as bound to the prompt before."""
    return format_named(api).validity.binds_thinking and abilities(head.model or None).may_bind


@lru_cache(maxsize=64)
def carries_thinking(head: PrefixDigests, api: Api) -> bool:
    """Return whether the model sees thinking of finished turns again, in removable blocks."""
    return format_named(api).validity.binds_thinking and abilities(head.model or None).carries_thinking
