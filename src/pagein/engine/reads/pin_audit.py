"""Audit stored sessions for pins, with code that is independent of `engine.log.pin_state`.

It reports: an evicted result that was pinned or vetoed; a restored result that differs from the stored one; a pinned
text that entered in other words, or without an order.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.entries import (
    CompactionEntry,
    Entry,
    EntryId,
    EpochEntry,
    InsertEntry,
    NoteEntry,
    PagedOut,
    PreviewEntry,
    Restoration,
)
from pagein.model.journal_notes import PinNote
from pagein.model.names import ContentHash
from pagein.model.pins import Wish, name_of
from pagein.model.shared_collections import SharedMap

_UNPROVEN: Final = "unproven"


@dataclass(frozen=True, slots=True)
class _Account:
    """The expected pins at one entry.

    held: calls whose results may not be evicted.
    out: content of evicted results, by call.
    texts: pinned texts, by name.
    heard: ids of orders.
    """

    held: frozenset[str] = frozenset()
    out: SharedMap[ContentHash] = field(default_factory=SharedMap)
    texts: SharedMap[str] = field(default_factory=SharedMap)
    heard: frozenset[str] = frozenset()


def pin_objections(entries: Iterable[Entry], stored: Callable[[ContentHash], bytes | None]) -> list[str]:
    """Return the violations of pins in a stored session, in words. Entries come parents first, with whole branches."""
    accounts: dict[EntryId | None, _Account] = {None: _Account()}
    found: list[str] = []
    for entry in entries:
        before = accounts[entry.parent]
        found += (f"entry {entry.id}: {why}" for why in _against(before, entry, stored))
        accounts[entry.id] = _after(before, entry)
    return found


def _against(account: _Account, entry: Entry, stored: Callable[[ContentHash], bytes | None]) -> Iterator[str]:
    match entry.body:
        case EpochEntry(paged=paged, reason=reason, restored=restored):
            if reason != _UNPROVEN:  # unproven answers must be evicted even if pinned (law 2)
                yield from _objections_to_paged(account, paged)
            for one in restored:
                yield from _came_back(account, one, stored)
        case InsertEntry(kind="pinned", text=text, names=names):
            for name in names:
                said = account.texts.get(name)
                if said is None or not text.endswith(f"\n{said}"):
                    yield f"{name} entered the window, and is not what was pinned"


def _objections_to_paged(account: _Account, paged: Iterable[PagedOut]) -> Iterator[str]:
    for one in paged:
        if one.call_id in account.held:
            yield f"the result of call {one.call_id} left although its user holds it"


def _came_back(account: _Account, one: Restoration, stored: Callable[[ContentHash], bytes | None]) -> Iterator[str]:
    content = account.out.get(one.call_id)
    if content is None:
        yield f"the result of call {one.call_id} came back, and never left"
    elif stored(content) not in (None, one.text.encode("utf-8", "surrogatepass")):
        yield f"the result of call {one.call_id} came back, and is not what left"


def _after(account: _Account, entry: Entry) -> _Account:
    match entry.body:
        case EpochEntry(paged=paged, restored=restored):
            out = account.out
            for one in paged:
                out = out.put(one.call_id, one.content)
            for back in restored:
                out = out.without(back.call_id)
            return replace(account, out=out)
        case PreviewEntry(paged=paged):
            out = account.out
            for one in paged:
                out = out.put(one.call_id, one.content)
            return replace(account, out=out)
        case CompactionEntry():  # kept answers may have lost their proof and must then be evicted
            return replace(account, held=frozenset())
        case NoteEntry(note=PinNote(wish=Wish() as wish)) if wish.id not in account.heard:
            return _apply_wish(account, wish)
        case _:
            return account


def _apply_wish(account: _Account, wish: Wish) -> _Account:
    heard = account.heard | {wish.id}
    if wish.act in ("pin", "veto"):
        return replace(account, heard=heard, held=account.held | {wish.call_id})
    if wish.act in ("unpin", "drop"):
        return replace(account, heard=heard, held=account.held - {wish.call_id})
    texts = account.texts
    if wish.act == "say":
        texts = texts.put(name_of(wish.text), wish.text)
    return replace(account, heard=heard, texts=texts)
