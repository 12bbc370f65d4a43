"""References in a store: their places, targets and holders."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pagein.model.references import Reference
from pagein.model.versions import Version


@dataclass(frozen=True, slots=True)
class Link:
    """A reference and its place in a document.

    path: JSON pointer (RFC 6901) into the document.
    resolved: whether the target exists now.
    """

    path: str
    reference: Reference
    resolved: bool


@dataclass(frozen=True, slots=True)
class LastingLink:
    """A reference at a place in an object, and the versions of the object that have it.

    since, until: sequences of the first of these versions, and of the first version without; None while the newest has it.
    resolved: whether the target is known to exist; False if that is not known.
    """

    path: str
    reference: Reference
    since: int
    until: int | None
    resolved: bool

    def stands_in(self, sequence: int) -> bool:
        """Return whether the version of the object with this sequence has the reference."""
        return self.since <= sequence and (self.until is None or self.until > sequence)


@dataclass(frozen=True, slots=True)
class Backlink:
    """A reference seen from its target: the holding version, and the place in the document."""

    source: Version
    path: str
    reference: Reference


Found: TypeAlias = Literal["id", "nickname", "time", "hash"]
Missing: TypeAlias = Literal["no such object", "no such version", "hashes disagree"]


@dataclass(frozen=True, slots=True)
class Resolution:
    """The version denoted by a reference.

    by: how the version was found; `hash` for a pin with a time that leads to another version (a clock was wrong).
    """

    reference: Reference
    version: Version
    by: Found


@dataclass(frozen=True, slots=True)
class UnresolvedReference:
    """A reference without a target.

    why: `hashes disagree` if the version exists, but differs from the view or content recorded in the pin.
    """

    reference: Reference
    why: Missing
