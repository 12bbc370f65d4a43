"""References seen in a store: where they stand, what they lead to, who holds them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pagein.model.references import Reference
from pagein.model.versions import Version


@dataclass(frozen=True, slots=True)
class Link:
    """A reference at its place. path: JSON pointer (RFC 6901) into the document. resolved: whether its target is there now."""

    path: str
    reference: Reference
    resolved: bool


@dataclass(frozen=True, slots=True)
class Backlink:
    """A reference seen from its target: the version that holds it, and where."""

    source: Version
    path: str
    reference: Reference


Found: TypeAlias = Literal["id", "nickname", "time", "hash"]
Missing: TypeAlias = Literal["no such object", "no such version", "hashes disagree"]


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a reference means. by: how it was found; `hash` for a pin whose time leads elsewhere (a clock was wrong)."""

    reference: Reference
    version: Version
    by: Found


@dataclass(frozen=True, slots=True)
class UnresolvedReference:
    """A reference that leads nowhere yet.

    why: `hashes disagree` where the version is there, but is not what the pin says of its view or content.
    """

    reference: Reference
    why: Missing
