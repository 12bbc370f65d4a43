"""What of a request does not stand as the client sent it, and its bytes.

Rules of this file
------------------
1. Told by the window alone: a result whose text in the window is not the client's is replaced. So it does not matter which
   decision had it so, and a result that was restored is the client's again.
2. A result that reads as withheld was kept without its text (law 9); it stands as the client sent it.
3. Costs what the window differs in from the one before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pagein.engine.chain import Transcript, Unit
from pagein.engine.hand import is_ours
from pagein.engine.rendering import Cell, Piece, cut, pieces_since, shared
from pagein.model.messages import Text, ToolResult
from pagein.policy.withholding import WITHHELD
from pagein.providers.wire.request import with_notes, with_texts


@dataclass(frozen=True, slots=True)
class Change:
    """What differs in one message. texts: of results, by the id of their call. notes: texts of ours that stand behind it."""

    texts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rendered:
    """A window with what of it is not the client's. tip: the window. changes: by the number of the message in the conversation."""

    tip: Cell | None = None
    changes: Mapping[int, Change] = field(default_factory=dict)

    @property
    def replaced(self) -> int:
        """How many results stand as something else."""
        return sum(len(one.texts) for one in self.changes.values())


NOTHING_RENDERED: Final = Rendered()


def rendered(tip: Cell | None, units: Sequence[Unit], said: int, before: Rendered = NOTHING_RENDERED) -> Rendered:
    """What of this window is not the client's. said: messages said when it was sent, the last of `units` being the last of them.

    before: of a window on the same branch, which may begin alike.
    """
    keep = shared(before.tip, tip)
    first = said - len(units) + 1
    kept_said = 0 if keep == 0 else _said_at(tip, keep)
    changes = {place: one for place, one in before.changes.items() if place + first <= kept_said}
    for piece in pieces_since(tip, keep):
        place = piece.said - first
        if 0 <= place < len(units) and piece.message is not units[place].message:
            change = _changed(piece, units[place])
            if change.texts or change.notes:
                changes[place] = _joined(changes.get(place), change)
    return Rendered(tip, changes)


class Splicer:
    """Puts changes into the bytes of requests. What was rendered once is not rendered again."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[bytes, Change, bytes]] = {}

    def items(self, script: Transcript, changes: Mapping[int, Change]) -> list[bytes]:
        """The messages of a request with these changes."""
        items = [one.raw for one in script.items]
        made: dict[int, tuple[bytes, Change, bytes]] = {}
        for place, change in changes.items():
            unit = script.units[place]
            last = unit.first + unit.count - 1
            raw = items[last]
            known = self._made.get(place)
            if known is None or known[0] != raw or known[1] != change:
                known = (raw, change, _spliced(raw, unit, change, script))
            made[place] = known
            items[last] = known[2]
        self._made = made
        return items


def _spliced(raw: bytes, unit: Unit, change: Change, script: Transcript) -> bytes:
    places = {
        place: change.texts[block.call_id]
        for place, block in enumerate(unit.message.blocks)
        if isinstance(block, ToolResult) and block.call_id in change.texts
    }
    made = with_texts(raw, script.api, places) if places else raw
    return with_notes(made, script.api, change.notes) if change.notes else made


def _changed(piece: Piece, unit: Unit) -> Change:
    ours = {block.call_id: block.text for block in unit.message.blocks if isinstance(block, ToolResult)}
    texts = {
        block.call_id: block.text
        for block in piece.message.blocks
        if isinstance(block, ToolResult)
        and block.text != WITHHELD
        and block.call_id in ours
        and block.text != ours[block.call_id]
    }
    notes = tuple(block.text for block in piece.message.blocks if isinstance(block, Text) and is_ours(block.injected))
    return Change(texts, notes)


def _joined(one: Change | None, other: Change) -> Change:
    return other if one is None else Change({**one.texts, **other.texts}, (*one.notes, *other.notes))


def _said_at(tip: Cell | None, keep: int) -> int:
    found = cut(tip, keep)
    return 0 if found is None else found.piece.said
