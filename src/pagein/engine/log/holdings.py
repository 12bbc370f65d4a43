"""What a branch holds outside its window: objects that were paged out of it or ingested for it, and how often they were recalled."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.entries import Body, EpochEntry, PagedOut, PreviewEntry, RecallEntry, ThinkingObject, TurnsLeft
from pagein.model.recall_entries import IngestNote, ingest_note_of, recall_of
from pagein.model.shared_map import SharedMap

TOOLCALL: Final = "toolcall"
FILE: Final = "file"
THINKING: Final = "thinking"
CHAT: Final = "chat"
_STUB: Final = re.compile(r"\[pagein: \S+ \| (.*?) \| [\d,]+ tokens \| (.*)\]")


@dataclass(frozen=True, slots=True)
class HeldObject:
    """An object of the branch. path: of a file, its key; None for what else there is."""

    object_id: str
    kind: str
    tokens: int
    chars: int
    description: str
    path: str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Link:
    one: HeldObject
    before: "_Link | None"


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """The objects of a branch, and figures about them. Made by steps; each is O(log) in their number and shares what it keeps.

    files: the newest object of each file that was ingested, by the file's key. tokens, chars: of all objects. stubs: results that were replaced in the window, of `stub_tokens` tokens; previews: results that
    entered as one. epochs: how
    often we rewrote the window. recalls: how often something was brought back; searches: how often of that by a search.
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

    _newest: _Link | None = None
    _known: SharedMap[None] = field(default_factory=SharedMap)

    @property
    def count(self) -> int:
        """How many objects there are."""
        return len(self._known)

    def __contains__(self, object_id: object) -> bool:
        return object_id in self._known

    def newest_first(self) -> Iterator[HeldObject]:
        """All objects, the one that came last first."""
        link = self._newest
        while link is not None:
            yield link.one
            link = link.before

    def with_object(self, one: HeldObject) -> "Holdings":
        """One object more; one that is there already changes no more than which is the newest of its file."""
        files = self.files if one.path is None else self.files.put(one.path, one)
        if one.object_id in self._known:
            return replace(self, files=files)
        return replace(
            self,
            files=files,
            tokens=self.tokens + one.tokens,
            chars=self.chars + one.chars,
            _newest=_Link(one, self._newest),
            _known=self._known.put(one.object_id, None),
        )


def step(held: Holdings, body: Body) -> Holdings:
    """What is held after one more entry."""
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
    recall = recall_of(body)
    if recall is not None:
        searched = "search" in recall.tool
        return replace(held, recalls=held.recalls + 1, searches=held.searches + searched)
    ingested = ingest_note_of(body)
    return held if ingested is None else held.with_object(_file(ingested))


def _add_paged(held: Holdings, paged: tuple[PagedOut, ...]) -> Holdings:
    for one in paged:
        held = held.with_object(_object_of(one))
    return held


def description_in(one: PagedOut) -> str:
    """What the stub of a paged-out result says of it."""
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


def _file(one: IngestNote) -> HeldObject:
    return HeldObject(one.object_id, FILE, one.tokens, one.chars, one.description, one.path)
