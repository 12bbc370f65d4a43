"""Values for the removal of private texts: their places, and the trace of an erased text."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class Tombstone:
    """The trace of an erased text, to prevent a new copy.

    digest: of the text, keyed with the secret of the store.
    chars: length of the text.
    beginning: to find candidate places in one pass: a sealed anchor, below 0, or a keyed fingerprint of the first characters
      (`policy/privacy/erased_texts.py`).
    """

    digest: str
    chars: int
    beginning: int


@dataclass(frozen=True, slots=True)
class PrivateSpan:
    """A private part of a text, never stored: characters from `start` up to `end`, and the name of the kind."""

    start: int
    end: int
    shape: str


@dataclass(frozen=True, slots=True)
class SessionGroup:
    """A group of sessions: no session outside of it has a part in one of its objects, or refers to one.

    objects: ids of their objects. notes: those of their notes.
    """

    sessions: frozenset[str]
    objects: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextHolders:
    """What holds a text, among what is stored up to some places.

    blobs: hashes of contents. entries: places, with their sessions. versions: sequences, with their sessions.
    last: the last numbers of blobs, entries and versions that were looked at, each.
    orders: number of orders to forget that had been carried out.
    unread: what could not be read, in words.
    """

    blobs: tuple[str, ...] = ()
    entries: Mapping[int, str] = field(default_factory=dict)
    versions: Mapping[int, str | None] = field(default_factory=dict)
    last: tuple[int, int, int] = (-1, -1, -1)
    orders: int = 0
    unread: tuple[str, ...] = ()


@dataclass(slots=True)
class Retold:
    """Counts of the records rewritten by an erasure.

    unread: records that could not be read, and may still hold the text.
    sessions: sessions in which text sent by pagein was rewritten, not only text of the client.
    """

    blobs: int = 0
    objects: int = 0
    entries: int = 0
    versions: int = 0
    unread: list[str] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)

    @property
    def count(self) -> int:
        """The total of rewritten records."""
        return self.blobs + self.objects + self.entries + self.versions
