"""Session details for the dashboard as plain values, and their collection from the engine.

The page asks every few seconds. An unchanged session is served from a cache. For a changed session only new epochs are collected, but the
whole window.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Protocol, TypeAlias, TypedDict

from pagein.engine.engine import Engine
from pagein.engine.session import Session
from pagein.errors import BadInput
from pagein.model.entries import EntryId, EpochEntry, RequestSent
from pagein.model.messages import Image, Message, Text, Thinking, ToolCall, ToolResult

_EPOCHS: Final = 50
_SESSIONS: Final = 8  # number of cached sessions
_LEAVES: Final = 16
HITS: Final = 50
"""Maximum number of search hits."""


class EpochView(TypedDict):
    """An epoch.

    out, back: results evicted and recalled with it
    frontier: the first changed message
    unlikely: for each read that left because an edit would hardly quote it, the counts that said so
    """

    number: int
    at: float | None
    reason: str
    frontier: int
    out: int
    back: int
    tokens: int
    unlikely: list[str]


class ObjectView(TypedDict):
    """A tool result in the window.

    form: `whole`, `preview` or `stub`; in a pooled window `whole` or `reference`
    id: the id for recall, "" for a whole result
    marks: as in `InWindow`; `shown` for a reference whose content the window has
    """

    id: str
    call: str
    tool: str
    form: str
    tokens: int
    marks: list[str]
    description: str


class Inside(TypedDict):
    """The content of a session.

    window: characters by kind of content
    epochs: the last ones, newest first
    objects: oldest first
    """

    name: str
    window: dict[str, int]
    epochs: list[EpochView]
    objects: list[ObjectView]


class HitView(TypedDict):
    """A place of a text in the store."""

    id: str
    name: str
    line: int
    text: str


Search: TypeAlias = Callable[[str], Sequence[HitView]]
"""Finds a text in the store. Called from any thread; raises PageinError."""


class Looker(Protocol):
    """Reads a curator's sessions and store. Called from any thread."""

    def inside(self, session: str) -> Inside:
        """Return the content of a session. Raises PageinError."""
        ...

    def search(self, text: str) -> Sequence[HitView]:
        """Return the places of a text in the store. Raises PageinError."""
        ...


@dataclass(frozen=True, slots=True)
class _SessionLook:
    """Cached details of a session.

    epochs: epochs up to each leaf seen before, the most recent leaves only; newest first
    """

    leaf: EntryId | None = None
    inside: Inside | None = None
    epochs: "OrderedDict[EntryId, tuple[EpochView, ...]]" = field(default_factory=OrderedDict)


class EngineLooker:
    """Reads an engine without changing anything."""

    def __init__(self, engine: Engine, search: Search) -> None:
        self._engine = engine
        self.search: Search = search
        self._lock = Lock()
        self._looked: OrderedDict[str, _SessionLook] = OrderedDict()

    def inside(self, session: str) -> Inside:
        """Return the content of a session at its leaf. Raises BadInput for a session that is not in the store."""
        found = self._engine.session(session)
        leaf = found.leaf
        if leaf is None:
            raise BadInput("no session of this name was seen since the gateway started, and the store has none")
        with self._lock:
            known = self._looked.get(session, _SessionLook())
        if known.inside is not None and known.leaf == leaf:
            return known.inside
        epochs = known.epochs.copy()
        inside = _inside(session, found, list(_epochs(found, leaf, epochs)))
        with self._lock:
            self._looked[session] = _SessionLook(leaf, inside, epochs)
            self._looked.move_to_end(session)
            while len(self._looked) > _SESSIONS:
                self._looked.popitem(last=False)
        return inside


def _inside(name: str, session: Session, epochs: list[EpochView]) -> Inside:
    rows = session.hand.window()
    forms = {row.call_id: row.form for row in rows}
    pooled = session.traffic.pooled
    references = {row.call_id for row in rows if pooled is not None and pooled.is_reference(row.call_id)}
    shown = {name for name in references if pooled is not None and pooled.shows_result(name)}
    return Inside(
        name=name,
        window=composition(session.window(), forms),
        epochs=epochs,
        objects=[
            ObjectView(
                id=row.call_id if row.call_id in references else row.object_id,
                call=row.call_id,
                tool=row.tool,
                form="reference" if row.call_id in references else row.form,
                tokens=row.tokens,
                marks=[*row.marks, *(("shown",) if row.call_id in shown else ())],
                description=row.description,
            )
            for row in rows
        ],
    )


def _epochs(
    session: Session, leaf: EntryId, known: "OrderedDict[EntryId, tuple[EpochView, ...]]"
) -> tuple[EpochView, ...]:
    """Return the last epochs up to a leaf.

    known: cached epochs up to earlier leaves; extended by this leaf
    """
    found: list[EpochView] = []
    here: EntryId | None = leaf
    at = None
    while here is not None and here not in known and len(found) < _EPOCHS:
        entry = session.journal.entry(here)
        if isinstance(entry.body, RequestSent):
            at = entry.body.moment  # an epoch opens with the request after it
        if isinstance(entry.body, EpochEntry):
            found.append(_epoch(entry.body, at))
        here = entry.parent
    epochs = (*found, *(known.get(here, ()) if here is not None else ()))[:_EPOCHS]
    if not epochs or epochs[0]["at"] is not None:  # otherwise its request is not sent yet
        known[leaf] = epochs
        known.move_to_end(leaf)
        while len(known) > _LEAVES:
            known.popitem(last=False)
    return epochs


def _epoch(body: EpochEntry, at: float | None) -> EpochView:
    tokens = sum(one.tokens for one in body.paged) + sum(one.tokens for one in body.turns)
    return EpochView(
        number=body.number,
        at=at,
        reason=body.reason,
        frontier=body.frontier,
        out=len(body.paged) + len(body.turns),
        back=len(body.restored),
        tokens=tokens,
        unlikely=[one.why for one in body.paged if one.why],
    )


def composition(messages: Sequence[Message], forms: Mapping[str, str]) -> dict[str, int]:
    """Return the number of characters by kind of content.

    forms: form of each result, by call; `whole` if missing
    """
    kinds: Counter[str] = Counter()
    for message in messages:
        for block in message.blocks:
            match block:
                case Text():
                    kinds[message.role] += len(block.text)
                case Thinking():
                    kinds["thinking"] += len(block.text)
                case ToolCall():
                    kinds["arguments"] += len(block.arguments)
                case ToolResult():
                    form = forms.get(block.call_id, "whole")
                    kinds["results" if form == "whole" else f"{form}s"] += len(block.text)
                case Image():
                    kinds["images"] += block.size
                case _:
                    kinds["other"] += len(block.json)
    return dict(kinds)
