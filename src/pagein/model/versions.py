"""Objects and their versions: content, writer and provenance."""

from collections import Counter
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
"""Names of the object's own properties, which cannot be names of metadata fields."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of an object.

    generator: `human`, `agent`, `tool` or `system`.
    parents: objects that it was derived from.
    """

    origin: str
    generator: str = "agent"
    parents: tuple[Reference, ...] = ()


UNKNOWN: Final = Provenance("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The wanted state of an object: a version without a place in time.

    content: the text loaded on activation; None for an object without text (a binary file, or a file known only by
        name).
    metadata: light fields, kept in the record.
    additional: further content (texts or structures), each stored and hashed separately.
    carried: additional fields that stay as the newest version has them, each by its hash there. So a version of a long
        document costs only what is new.
    locked: None for the default of the type.
    view: names of the fields in the metadata view; None for the default of the type.
    deleted: the object no longer exists at its origin. Its history stays.

    Lists and mappings are frozen. Raises BadInput or BadName for values that cannot be an object.
    """

    id: str
    type: str
    content: str | None = None
    provenance: Provenance = UNKNOWN
    metadata: Mapping[str, object] = NO_FIELDS
    additional: Mapping[str, object] = NO_FIELDS
    carried: Mapping[str, ContentHash] = field(default_factory=dict)
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
        names = [*self.metadata, *self.additional, *self.carried]
        if clash := sorted({*names} & ENVELOPE):
            raise BadInput(f"{clash[0]!r} is no name for a field: it means the object itself")
        if clash := sorted(name for name, count in Counter(names).items() if count > 1):
            raise BadInput(f"{clash[0]!r} is in two of metadata, additional and carried")
        object.__setattr__(self, "metadata", frozen_fields(self.metadata, "/metadata"))
        object.__setattr__(self, "additional", frozen_fields(self.additional, "/additional"))
        if self.locked is None:
            object.__setattr__(self, "locked", type_of(self.type).locked)


def _is_nickname(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_NICKNAME and text == text.strip() and len(text.splitlines()) == 1


def deletion(version: "Version") -> Draft:
    """Draft the deletion of an object: no content, path or nickname. The remaining fields stay unchanged."""
    metadata = Fields({name: None if name == "path" else value for name, value in version.metadata.items()})
    return replace(version.draft(None), metadata=metadata, nickname=None, deleted=True)


@dataclass(frozen=True, slots=True)
class Writer:
    """The writer of a version.

    kind: `client`, `watcher`, `system` or `import`.
    session: the session of the writer, if any.
    """

    kind: str = "client"
    reason: str = "manual"
    session: str | None = None


SOMEBODY: Final = Writer()


@dataclass(frozen=True, slots=True)
class Version:
    """An immutable version of an object, without the content.

    number: counts the versions of the object, from 1.
    sequence: counts all versions of the store. Only `number` and `sequence` define an order.
    at: transaction time, seconds since 1970, by the writer's clock.
    chars: length of the content (0 for null).
    additional: names of the additional fields with the hashes of their canonical forms.
    record: the canonical form of all fields, the input of the object hash.
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

    @property
    def contents(self) -> frozenset[ContentHash]:
        """Return the hashes of the blobs that it needs."""
        own = () if self.content_hash is None else (self.content_hash,)
        return frozenset((*own, *self.additional.values()))

    def pin(self) -> Pin:
        """The pin of a static reference to this version."""
        return Pin(self.at, self.object_hash, self.metadata_view_hash, self.content_hash)

    def static(self, part: str | None = None, relation: str = "link") -> Reference:
        """A static reference to the whole version or to a part."""
        return Reference(self.id, self.pin(), part, relation)

    def draft(self, content: str | None, additional: Mapping[str, object] = NO_FIELDS) -> Draft:
        """A draft with the fields of this version and the given content, to be changed with `replace`."""
        return Draft(
            id=self.id, type=self.type, content=content, provenance=self.provenance, metadata=self.metadata,
            additional=additional, nickname=self.nickname, locked=self.locked, view=self.view, deleted=self.deleted,
        )  # fmt: skip
