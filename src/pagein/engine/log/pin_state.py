"""The pins on a branch: results to keep, drop or restore, and texts to show in every window.

A fold over the entries of the branch (law 6); of two orders about one object the later wins. The fold also maps object
ids to calls while stubs replace their results.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.engine.log.pageout import SAID
from pagein.model.entries import Body, EpochEntry, InsertEntry, NoteEntry, PagedOut, Part, PreviewEntry, RequestSent
from pagein.model.journal_notes import PinNote
from pagein.model.messages import Block, Other, Text, ToolCall, ToolResult
from pagein.model.pins import Wish, name_of
from pagein.model.server_results import stub_of
from pagein.model.shared_collections import SharedMap

PINNED: Final = "pinned"
MANIFEST: Final = "manifest"
_OURS: Final = "pagein:"
_NOBODY: Final[frozenset[str]] = frozenset()
NOTHING_AWAY: Final[SharedMap[PagedOut]] = SharedMap()


@dataclass(frozen=True, slots=True, eq=False)
class Hand:
    """The pins of the user at one entry.

    pinned, vetoed: calls whose results stay.
    dropping: calls whose results are to be evicted, whatever their age.
    restoring: calls whose results are to return.
    epoch_now: True when the next call opens an epoch if anything may be evicted.
    texts: pinned texts by name, in order of their arrival.
    shown: names of the pinned texts in the window.
    listed: ids of the objects on manifest pages in the window.
    pages: number of these pages.
    off: True while evictions are switched off.
    heard: ids of all orders so far.
    away: by call, the stub of its result or of its arguments (`away_as`).
    calls: the call of an object, by object id.
    """

    pinned: frozenset[str] = _NOBODY
    vetoed: frozenset[str] = _NOBODY
    dropping: frozenset[str] = _NOBODY
    restoring: frozenset[str] = _NOBODY
    epoch_now: bool = False
    texts: tuple[tuple[str, str], ...] = ()
    shown: frozenset[str] = _NOBODY
    listed: frozenset[str] = _NOBODY
    pages: int = 0
    off: bool = False
    heard: frozenset[str] = _NOBODY
    away: SharedMap[PagedOut] = NOTHING_AWAY
    calls: SharedMap[str] = field(default_factory=SharedMap)

    @property
    def calls_that_stay(self) -> frozenset[str]:
        """Calls whose results may not be evicted."""
        return self.pinned | self.vetoed if self.vetoed else self.pinned

    @property
    def unsaid(self) -> tuple[tuple[str, str], ...]:
        """Pinned texts that the window does not show yet."""
        return tuple(one for one in self.texts if one[0] not in self.shown)

    def stands_for(self, result: ToolResult) -> PagedOut | None:
        """Return the evicted result if this result shows its stub."""
        away = self.away.get(result.call_id)
        return away if away is not None and away.stub == result.text else None

    def stands_for_server(self, block: Other) -> PagedOut | None:
        """Return the evicted result of a tool of the provider's if this block is its stub."""
        stub = stub_of(block)
        away = None if stub is None else self.away.get(stub[0])
        return away if away is not None and stub is not None and away.stub == stub[1] else None

    def stands_for_arguments(self, call: ToolCall) -> PagedOut | None:
        """Return the masked arguments if this call shows their replacement."""
        away = self.away.get(away_as(call.id, "arguments"))
        return away if away is not None and away.stub == call.arguments else None

    def previews(self, object_id: str) -> PagedOut | None:
        """Return the preview in the window by the id of an object."""
        paged = self.away.get(self.calls.get(object_id) or "")
        return paged if paged is not None and paged.short and paged.object_id == object_id else None

    def is_away(self, call: str) -> bool:
        """Return whether the result of this call is evicted or its arguments are masked."""
        return call in self.away or away_as(call, "arguments") in self.away

    def after_compaction(self, blocks: Collection[Block]) -> "Hand":
        """Return the pins after a compaction, given the blocks left in the window."""
        away: SharedMap[PagedOut] = SharedMap()
        kept: set[str] = set()
        back: set[str] = set()
        for block in blocks:
            paged: PagedOut | None = None
            if isinstance(block, ToolResult):
                kept.add(block.call_id)
                paged = self.stands_for(block)
            elif isinstance(block, ToolCall):
                paged = self.stands_for_arguments(block)
            elif isinstance(block, Other):
                paged = self.stands_for_server(block)
            if paged is not None:
                away = away.put(away_as(paged.call_id, paged.part), paged)
                back.add(paged.call_id)
        restoring = self.restoring & back
        texts = _names_in(blocks, PINNED)
        listed = self.listed & _names_in(blocks, MANIFEST)
        return replace(
            self,
            away=away,
            restoring=restoring,
            dropping=self.dropping & kept,
            shown=self.shown & texts,
            listed=listed,
            pages=self.pages if listed else 0,
        )


NOTHING: Final = Hand()


def away_as(call: str, part: Part) -> str:
    """Return the key of a result or of arguments in `Hand.away`; a result has the id of its call."""
    return call if part == "result" else f"{call}\0{part}"


def label(kind: str, names: Iterable[str]) -> str:
    """Return the label of pagein's own text in a message."""
    return " ".join((f"{_OURS}{kind}", *names))


def is_ours(injected: str | None) -> bool:
    """Return whether a label marks pagein's own text."""
    return injected is not None and injected.startswith(_OURS)


def _names_in(blocks: Iterable[Block], kind: str) -> frozenset[str]:
    """Return the names in the labels of pagein's texts of this kind."""
    marks = (
        block.injected.split()
        for block in blocks
        if isinstance(block, Text) and block.injected and is_ours(block.injected)
    )
    return frozenset(name for first, *names in marks if first == _OURS + kind for name in names)


def step(hand: Hand, body: Body) -> Hand:
    """Return the pins after a further entry. A compaction is handled by `after_compaction`."""
    match body:
        case NoteEntry(note=PinNote(wish=Wish() as wish)) if wish.id not in hand.heard:
            return _add_wish(hand, wish)
        case PreviewEntry():
            return _remove_paged(hand, body.paged)
        case EpochEntry():
            return _at_edge(hand, body)
        case InsertEntry():
            return _add_insert(hand, body)
        case RequestSent() if hand.epoch_now:
            return replace(hand, epoch_now=False)
        case _:
            return hand


def _add_insert(hand: Hand, inserted: InsertEntry) -> Hand:
    if inserted.kind == MANIFEST:
        return replace(hand, listed=hand.listed.union(inserted.names), pages=hand.pages + 1)
    return replace(hand, shown=hand.shown.union(inserted.names)) if inserted.kind == PINNED else hand


def _at_edge(hand: Hand, epoch: EpochEntry) -> Hand:
    left = _remove_paged(hand, epoch.paged)
    for back in epoch.restored:
        left = replace(left, away=left.away.without(away_as(back.call_id, back.part)))
    gone = frozenset(epoch.calls)
    restored = frozenset(one.call_id for one in epoch.restored)
    names = frozenset(name for one in epoch.turns for name in one.names)
    calls = left.calls
    for one in epoch.turns:
        calls = calls.put(one.object_id, f"{SAID}{one.object_id}")
    return replace(
        left,
        calls=calls,
        dropping=left.dropping - gone,
        restoring=left.restoring - restored - frozenset(call for one in epoch.turns for call in one.calls),
        epoch_now=False,
        # pinned texts that were evicted with a turn enter again
        shown=left.shown - names,
        listed=left.listed - names,
    )


def _remove_paged(hand: Hand, paged: tuple[PagedOut, ...]) -> Hand:
    away, calls = hand.away, hand.calls
    for one in paged:
        away, calls = away.put(away_as(one.call_id, one.part), one), calls.put(one.object_id, one.call_id)
    return replace(hand, away=away, calls=calls)


def _add_wish(hand: Hand, wish: Wish) -> Hand:
    heard = replace(hand, heard=hand.heard | {wish.id})
    if wish.act in ("pin", "unpin", "drop", "restore", "veto"):
        return _of_object(heard, wish)
    match wish.act:
        case "epoch":
            return replace(heard, epoch_now=True)
        case "cancel":
            return replace(heard, epoch_now=False)
        case "say":
            name = name_of(wish.text)
            others = tuple(one for one in hand.texts if one[0] != name)
            return replace(heard, texts=(*others, (name, wish.text)))
        case "unsay":
            name = name_of(wish.text)
            texts = tuple(one for one in hand.texts if one[0] != name)
            return replace(heard, texts=texts, shown=hand.shown - {name})
        case _:
            return replace(heard, off=wish.act == "off")


def _of_object(hand: Hand, wish: Wish) -> Hand:
    this = frozenset((wish.call_id,))
    is_away = hand.is_away(wish.call_id)
    pinned, vetoed = hand.pinned - this, hand.vetoed - this
    dropping, restoring = hand.dropping - this, hand.restoring - this
    match wish.act:
        case "pin":
            pinned |= this
        case "veto":
            vetoed = hand.vetoed | this
            pinned = hand.pinned
        case "drop":
            dropping |= this
        case "restore":
            pinned, vetoed = hand.pinned, hand.vetoed
    if wish.act in ("pin", "restore") and is_away:
        restoring |= this
    return replace(hand, pinned=pinned, vetoed=vetoed, dropping=dropping, restoring=restoring)
