"""Objects of a branch outside the window, evicted or ingested, with counts of recalls."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.delegation_notes import ChildResultNote
from pagein.model.entries import (
    Body,
    EpochEntry,
    NoteEntry,
    PagedOut,
    PreviewEntry,
    RecallEntry,
    ThinkingObject,
    TurnsLeft,
)
from pagein.model.journal_notes import IngestNote, RecallNote
from pagein.model.shared_collections import SharedMap

TOOLCALL: Final = "toolcall"
FILE: Final = "file"
THINKING: Final = "thinking"
CHAT: Final = "chat"
CHILD_RESULT: Final = "child_result"
_STUB: Final = re.compile(r"\[pagein: \S+ \| (.*?) \| [\d,]+ tokens \| (.*)\]")


@dataclass(frozen=True, slots=True)
class HeldObject:
    """An object of the branch.

    path: key of the file; None for other objects.
    """

    object_id: str
    kind: str
    tokens: int
    chars: int
    description: str
    path: str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _HeldLink:
    one: HeldObject
    before: "_HeldLink | None"


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """The objects of a branch, and figures about them. Each step costs O(log n) and shares structure.

    files: the newest object of each ingested file, by the file's key.
    tokens, chars: of all objects.
    epochs: rewrites of the window by pagein.
    stubs: results replaced in the window.
    stub_tokens: tokens of those results before.
    previews: results that entered the window as a preview.
    recalls: recalls of any kind.
    searches: recalls by a search.
    """

    files: SharedMap[HeldObject] = field(default_factory=SharedMap)
    tokens: int = 0
    chars: int = 0
    epochs: int = 0
    stubs: int = 0
    stub_tokens: int = 0
    previews: int = 0
    recalls: int = 0
    searches: int = 0

    _newest: _HeldLink | None = None
    _known: SharedMap[None] = field(default_factory=SharedMap)

    @property
    def count(self) -> int:
        """Number of objects."""
        return len(self._known)

    def __contains__(self, object_id: object) -> bool:
        return object_id in self._known

    def newest_first(self) -> Iterator[HeldObject]:
        """Iterate over the objects, newest first."""
        link = self._newest
        while link is not None:
            yield link.one
            link = link.before

    def with_object(self, one: HeldObject) -> "Holdings":
        """Add an object. A known object only becomes the newest of its file."""
        files = self.files if one.path is None else self.files.put(one.path, one)
        if one.object_id in self._known:
            return replace(self, files=files)
        return replace(
            self,
            files=files,
            tokens=self.tokens + one.tokens,
            chars=self.chars + one.chars,
            _newest=_HeldLink(one, self._newest),
            _known=self._known.put(one.object_id, None),
        )


def step(held: Holdings, body: Body) -> Holdings:
    """Return the holdings after a further entry."""
    match body:
        case EpochEntry(paged=paged, thought=thought, turns=turns):
            left = _add_paged(held, paged)
            for one in turns:
                left = left.with_object(_turns(one))
            left = left if thought is None else left.with_object(_thought(thought))
            tokens = sum(one.tokens for one in paged)
            return replace(
                left, epochs=held.epochs + 1, stubs=held.stubs + len(paged), stub_tokens=held.stub_tokens + tokens
            )
        case PreviewEntry(paged=paged):
            return replace(_add_paged(held, paged), previews=held.previews + len(paged))
        case RecallEntry():
            return replace(held, recalls=held.recalls + 1)
        case NoteEntry(note=RecallNote(tool=tool)):
            return replace(held, recalls=held.recalls + 1, searches=held.searches + ("search" in tool))
        case NoteEntry(note=(IngestNote() | ChildResultNote()) as stored):
            return held.with_object(_file(stored) if isinstance(stored, IngestNote) else _child_result(stored))
        case _:
            return held


def _add_paged(held: Holdings, paged: tuple[PagedOut, ...]) -> Holdings:
    for one in paged:
        held = held.with_object(_object_of(one))
    return held


def description_in(one: PagedOut) -> str:
    """Return the description in the stub of an evicted result."""
    if one.part == "arguments":
        return f"arguments of a call - {one.chars:,} characters"
    told = _STUB.match(one.short or one.stub)
    return told[2] if told is not None else ""


def _object_of(one: PagedOut) -> HeldObject:
    told = _STUB.search(one.short or one.stub)
    about = f"{told[1]}: {description_in(one)}" if told is not None else ""
    return HeldObject(one.object_id, CHAT if one.part == "text" else TOOLCALL, one.tokens, one.chars, about)


def _turns(one: TurnsLeft) -> HeldObject:
    about = "steps of a turn" if one.are_steps else "earlier turns of the conversation"
    return HeldObject(one.object_id, CHAT, one.tokens, one.chars, about)


def _thought(one: ThinkingObject) -> HeldObject:
    return HeldObject(one.object_id, THINKING, one.tokens, one.chars, "what the model thought in turns that are over")


def _child_result(one: ChildResultNote) -> HeldObject:
    return HeldObject(one.object_id, CHILD_RESULT, one.tokens, one.chars, one.title)


def _file(one: IngestNote) -> HeldObject:
    return HeldObject(one.object_id, FILE, one.tokens, one.chars, one.description, one.path)
