"""Texts that must not be stored: where they stand in others, and what is left of one that was ordered to be forgotten."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class Tombstone:
    """A text that must not be stored any more.

    digest: of the text, keyed with the secret of the store. chars: its length. beginning: a keyed fingerprint of its first characters, by
    which places where it may stand are found in one pass.
    """

    digest: str
    chars: int
    beginning: int


@dataclass(frozen=True, slots=True)
class PrivateSpan:
    """What must not be stored of a text: the characters from `start` up to `end`, and the name of its kind."""

    start: int
    end: int
    shape: str


@dataclass(slots=True)
class Retold:
    """What was told anew, in numbers. unread: what could not be read, so that nobody can say whether it holds the text.
    sessions: those in which something that we sent was told anew, and not only what others said.
    """

    blobs: int = 0
    objects: int = 0
    entries: int = 0
    versions: int = 0
    unread: list[str] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)

    @property
    def count(self) -> int:
        """All of it."""
        return self.blobs + self.objects + self.entries + self.versions
