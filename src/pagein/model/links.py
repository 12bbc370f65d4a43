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
