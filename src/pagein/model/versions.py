"""Objects and their versions: what one says, who wrote it, where it comes from (memory-system 4, 13, 24.0)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.errors import BadInput
from pagein.model.identifiers import object_id
from pagein.model.names import ContentHash
from pagein.model.object_types import type_of
from pagein.model.references import Pin, Reference
from pagein.model.values import NO_FIELDS, Fields, frozen_fields

_LONGEST_NICKNAME: Final = 200
ENVELOPE: Final = frozenset(
    [
        *("id", "type", "nickname", "content", "metadata", "additional", "provenance", "view", "locked", "deleted"),
        *("char_count", "session", "content_hash", "metadata_view_hash", "object_hash"),
    ]
)
"""Names that mean the object itself and can be no field of its metadata."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an object comes from. generator: `human`, `agent`, `tool` or `system`. parents: what it was derived from."""

    origin: str
    generator: str = "agent"
    parents: tuple[Reference, ...] = ()


UNKNOWN: Final = Provenance("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An object as one wants it to be: a version without its place in time.

    content: the text that activating it loads; None where there is none (a binary file, one known only by name).
    metadata: light fields, kept in the record. additional: further content (texts or structures), each kept and hashed apart.
    locked: None for what the type says. view: names of the fields that the metadata view shows; None for those of the type.
    deleted: the object is gone where it came from. Its history stays.
    Raises BadInput or BadName on what cannot be an object; lists and mappings given are frozen.
    """

    id: str
    type: str
    content: str | None = None
    provenance: Provenance = UNKNOWN
    metadata: Mapping[str, object] = NO_FIELDS
    additional: Mapping[str, object] = NO_FIELDS
    nickname: str | None = None
    locked: bool | None = None
    view: tuple[str, ...] | None = None
    deleted: bool = False

    def __post_init__(self) -> None:
        object_id(self.id, self.type)
        if not self.type.isidentifier():
            raise BadInput(f"not a type of object: {self.type[:40]!r}")
        if self.nickname is not None and not _is_nickname(self.nickname):
            raise BadInput(
                f"not a nickname: {self.nickname[:40]!r}; 1 to {_LONGEST_NICKNAME} characters, no line breaks, no blank ends"
            )
        names = {*self.metadata, *self.additional}
        if clash := sorted(names & ENVELOPE):
            raise BadInput(f"{clash[0]!r} is no name for a field: it means the object itself")
        if clash := sorted({*self.metadata} & {*self.additional}):
            raise BadInput(f"{clash[0]!r} is in metadata and in additional")
        object.__setattr__(self, "metadata", frozen_fields(self.metadata, "/metadata"))
        object.__setattr__(self, "additional", frozen_fields(self.additional, "/additional"))
        if self.locked is None:
            object.__setattr__(self, "locked", type_of(self.type).locked)


def _is_nickname(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_NICKNAME and text == text.strip() and len(text.splitlines()) == 1


def deletion(version: "Version") -> Draft:
    """The draft that says the object is gone: no content, no path, no nickname. The rest is as it was (memory-system 18.2)."""
    metadata = Fields({name: None if name == "path" else value for name, value in version.metadata.items()})
    return replace(version.draft(None), metadata=metadata, nickname=None, deleted=True)


@dataclass(frozen=True, slots=True)
class Writer:
    """Who wrote a version. kind: `client`, `watcher`, `system` or `import`. session: in which session, if in one."""

    kind: str = "client"
    reason: str = "manual"
    session: str | None = None


SOMEBODY: Final = Writer()


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable version of an object, without its content.

    number: counts the versions of the object, from 1. sequence: counts all versions of the store; only these two order anything.
    at: transaction time, seconds since 1970, as the writer's clock had it. chars: length of the content (0 where it is null).
    additional: names of the additional fields with the hashes of their canonical forms.
    record: the canonical form of all fields, from which the object hash is made.
    """

    sequence: int
    number: int
    at: float
    id: str
    type: str
    nickname: str | None
    locked: bool
    deleted: bool
    view: tuple[str, ...] | None
    provenance: Provenance
    metadata: Fields
    chars: int
    content_hash: ContentHash | None
    additional: Mapping[str, ContentHash]
    metadata_view_hash: ContentHash
    object_hash: ContentHash
    writer: Writer
    record: str = field(repr=False)

    def pin(self) -> Pin:
        """What a static reference to this version records."""
        return Pin(self.at, self.object_hash, self.metadata_view_hash, self.content_hash)

    def static(self, part: str | None = None, relation: str = "link") -> Reference:
        """A static reference to this version, or to one part of it."""
        return Reference(self.id, self.pin(), part, relation)

    def draft(self, content: str | None, additional: Mapping[str, object] = NO_FIELDS) -> Draft:
        """A draft that says what this version says, with this content and these additional fields; to change with `replace`."""
        return Draft(
            id=self.id, type=self.type, content=content, provenance=self.provenance, metadata=self.metadata,
            additional=additional, nickname=self.nickname, locked=self.locked, view=self.view, deleted=self.deleted,
        )  # fmt: skip
