r"""Records and hashes: the canonical form of a version, and the identity derived from the hash.

The record of a version is the canonical form (`model/values.py`) of all its fields, in which the content and each
additional field are replaced by their hashes. The three hashes are

    content_hash        sha256 of the content as UTF-8 (a lone surrogate as its three bytes in WTF-8); none for null
    object_hash         sha256 of "pagein object 1\n" and the record
    metadata_view_hash  sha256 of "pagein view 1\n" and the canonical form of the metadata view, see `metadata_view`

An additional field is hashed by its canonical form. So a record proves its object hash without any content, and no hash
depends on a time, a number, a writer or a store.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

import msgspec

from pagein.errors import BadInput, BadName, DamagedBlob
from pagein.model.names import ContentHash
from pagein.model.object_types import type_of
from pagein.model.references import Reference
from pagein.model.values import (
    Fields,
    Value,
    canonical,
    escape_name,
    frozen_fields,
    parse_fields,
    parse_value,
    references_in,
)
from pagein.model.versions import Draft, Provenance, Version, Writer

_OBJECT_TAG: Final = "pagein object 1\n"
_VIEW_TAG: Final = "pagein view 1\n"
_OWN_FIELDS: Final = ("id", "type", "nickname", "locked", "deleted", "view", "provenance")
_PARTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VIEWS: Final = msgspec.json.Decoder(list[str] | None)
_NAMES: Final = msgspec.json.Decoder(str)
_CONTENTS: Final = msgspec.json.Decoder(str | None)
Shown: TypeAlias = tuple[tuple[str, Value | ContentHash], ...]


@dataclass(frozen=True, slots=True)
class SealedDraft:
    """A draft with derived data: record, hashes, bytes to store, and references.

    additional: names, in order, with the bytes of their canonical forms. Without the carried fields.
    references: with their places, in the order of places. Without those of carried fields.
    """

    draft: Draft
    record: str
    chars: int
    content: bytes | None
    additional: tuple[tuple[str, bytes], ...]
    content_hash: ContentHash | None
    metadata_view_hash: ContentHash
    object_hash: ContentHash
    references: tuple[tuple[str, Reference], ...]

    @classmethod
    def of(cls, draft: Draft) -> Self:
        """Compute the record and hashes of a draft."""
        content = None if draft.content is None else encode_content(draft.content)
        additional = frozen_fields(draft.additional)
        kept = tuple((name, canonical(additional[name]).encode()) for name in sorted(additional))
        content_hash = None if content is None else ContentHash.of(content)
        hashes_of_fields = {**draft.carried, **{name: ContentHash.of(data) for name, data in kept}}
        fields = _fields_of(draft, content_hash, hashes_of_fields)
        record, chars = canonical(fields), len(draft.content or "")
        references = (
            *references_in(additional, "/additional"),
            *references_in(fields["metadata"], "/metadata"),
            *references_in(fields["provenance"], "/provenance"),
        )
        hashes = (content_hash, _hash_of_view(_view_fields(fields, chars)), object_hash_of(record))
        return cls(draft, record, chars, content, kept, *hashes, references)

    def changed_places(self, before: Collection[str]) -> tuple[str, ...] | None:
        """Beginnings of the places where the next version may differ; None for anywhere, if no field is carried.

        before: names of the additional fields of the newest version.
        """
        if not self.draft.carried:
            return None
        changed = {name for name, _ in self.additional} | (set(before) - set(self.draft.carried))
        return ("/metadata/", "/provenance/", *(f"/additional/{escape_name(name)}/" for name in sorted(changed)))

    def version(self, *, sequence: int, number: int, at: float, writer: Writer) -> Version:
        """The version made from this draft at a place in time."""
        return version_of(self.record, sequence=sequence, number=number, at=at, chars=self.chars, writer=writer)


def encode_content(content: str) -> bytes:
    """Encode a content as the bytes to store and hash."""
    return content.encode("utf-8", "surrogatepass")


def decode_content(content: bytes) -> str:
    """Decode stored bytes to the content."""
    return content.decode("utf-8", "surrogatepass")


def object_hash_of(record: str) -> ContentHash:
    """The object hash of a record."""
    return ContentHash.of((_OBJECT_TAG + record).encode())


def version_of(record: str, *, sequence: int, number: int, at: float, chars: int, writer: Writer) -> Version:
    """The version with a given record. Raises BadInput for a malformed record."""
    fields = parse_fields(record)
    try:
        view, content = fields["view"], fields["content"]
        return Version(
            sequence=sequence,
            number=number,
            at=at,
            id=_text(fields["id"]),
            type=_text(fields["type"]),
            nickname=_text_or_none(fields["nickname"]),
            locked=fields["locked"] is True,
            deleted=fields["deleted"] is True,
            view=tuple(_text(name) for name in view) if isinstance(view, tuple) else None,
            provenance=_provenance(_inner(fields["provenance"])),
            metadata=_inner(fields["metadata"]),
            chars=chars,
            content_hash=None if content is None else ContentHash.parse(_text(content)),
            additional={name: ContentHash.parse(_text(one)) for name, one in _inner(fields["additional"]).items()},
            metadata_view_hash=_hash_of_view(_view_fields(fields, chars)),
            object_hash=object_hash_of(record),
            writer=writer,
            record=record,
        )
    except KeyError as problem:
        raise BadInput(f"not the record of a version: {problem} is missing") from problem


class _RecordOfFields(msgspec.Struct):
    additional: dict[str, str]


_fields: Final = msgspec.json.Decoder(_RecordOfFields)


def additional_in(record: str) -> Iterator[ContentHash]:
    """Yield the hashes of the additional fields in the record of a version. Raises DamagedBlob for a malformed record."""
    try:
        try:
            found = list(_fields.decode(record).additional.values())
        except (msgspec.MsgspecError, UnicodeError):  # it has half of a surrogate pair, as names of others may
            found = [_text(one) for one in _inner(parse_fields(record)["additional"]).values()]
        yield from map(ContentHash.parse, found)
    except (BadInput, BadName, KeyError) as problem:
        raise DamagedBlob(f"not the record of a version: {problem}") from problem


def metadata_view(version: Version) -> Shown:
    """The metadata view of a version: names with values, in order; null for a missing field.

    A field stored as content (the content itself, an additional field) appears as its hash; load it to show it. The
    arguments of a tool call appear as `args_display`, or as the canonical form of `args`. A deleted object has
    `deleted` after the rest.
    """
    return _view_fields(parse_fields(version.record), version.chars)


def view_hash_of(version: Version) -> ContentHash:
    """The metadata view hash computed from a version's record."""
    return _hash_of_view(metadata_view(version))


def pinned_hashes_of(record: str, chars: int) -> tuple[ContentHash, ContentHash | None]:
    """The metadata view hash and the content hash of the version with a record, without making the version. Raises BadInput."""
    try:
        try:
            hash_of_view, content = _cut_out(record, chars)
        except msgspec.MsgspecError:  # it refuses halves of surrogate pairs, too
            fields = parse_fields(record)
            hash_of_view, content = _hash_of_view(_view_fields(fields, chars)), _text_or_none(fields["content"])
        return hash_of_view, None if content is None else ContentHash.parse(content)
    except KeyError as problem:
        raise BadInput(f"not the record of a version: {problem} is missing") from problem


def _cut_out(record: str, chars: int) -> tuple[ContentHash, str | None]:
    """Return the hash of the view, and the digits of the content's hash.

    A part of a canonical form is the canonical form of the part, so the values of the view are cut out of the record.
    """
    fields = _PARTS.decode(record)
    metadata, additional = _PARTS.decode(fields["metadata"]), _PARTS.decode(fields["additional"])
    view, content = _VIEWS.decode(fields["view"]), _CONTENTS.decode(fields["content"])
    names = list(type_of(_NAMES.decode(fields["type"])).view if view is None else view)
    if bytes(fields["deleted"]) == b"true" and "deleted" not in names:
        names.append("deleted")

    def told(name: str) -> str:
        key = f"${name}" if name.startswith("$") else name
        if name == "char_count":
            return str(chars)
        if name == "content":
            return "null" if content is None else f'"hash","{content}"'
        if key in additional:
            return f'"hash",{bytes(additional[key]).decode()}'
        if name in _OWN_FIELDS:
            return bytes(fields[name]).decode()
        known = bytes(metadata.get(key, b"null")).decode()
        if name == "args_display" and known == "null" and "args" in metadata:
            return canonical(bytes(metadata["args"]).decode())
        return known

    pairs = ",".join(f"[{canonical(name)},{told(name)}]" for name in names)
    return ContentHash.of(f"{_VIEW_TAG}[{pairs}]".encode()), content


def record_of(version: Version) -> str:
    """The record that follows from a version's fields."""
    return canonical(_fields_of(version.draft(None), version.content_hash, version.additional))


def references_beside(version: Version) -> Iterator[tuple[str, Reference]]:
    """The references in a version that are not in additional fields, with their places."""
    yield from references_in(version.metadata, "/metadata")
    yield from references_in(version.provenance.parents, "/provenance/parent_refs")


def value_of(data: bytes) -> Value:
    """Parse the canonical form of an additional field."""
    return parse_value(data)


def _fields_of(draft: Draft, content: ContentHash | None, additional: Mapping[str, ContentHash]) -> Fields:
    origin = draft.provenance
    provenance: dict[str, Value] = {
        "origin": origin.origin,
        "generator": origin.generator,
        "parent_refs": origin.parents,
    }
    return Fields(
        {
            "id": draft.id,
            "type": draft.type,
            "nickname": draft.nickname,
            "locked": draft.locked,
            "deleted": draft.deleted,
            "view": draft.view,
            "provenance": Fields(provenance),
            "metadata": frozen_fields(draft.metadata),
            "content": None if content is None else content.hex,
            "additional": Fields({name: digest.hex for name, digest in additional.items()}),
        }
    )


def _view_fields(fields: Fields, chars: int) -> Shown:
    view = fields["view"]
    names = [str(name) for name in view] if isinstance(view, tuple) else type_of(str(fields["type"])).view
    shown = [(name, _shown_value(name, fields, chars)) for name in names]
    if fields["deleted"] is True and "deleted" not in names:
        shown.append(("deleted", True))
    return tuple(shown)


def _shown_value(name: str, fields: Fields, chars: int) -> Value | ContentHash:
    metadata, additional = _inner(fields["metadata"]), _inner(fields["additional"])
    if name == "char_count":
        return chars
    if name == "content":
        return None if fields["content"] is None else ContentHash(_text(fields["content"]))
    if name in additional:
        return ContentHash(_text(additional[name]))
    if name in _OWN_FIELDS:
        return fields[name]
    if name == "args_display" and metadata.get(name) is None and "args" in metadata:
        return canonical(metadata["args"])
    return metadata.get(name)


def _hash_of_view(shown: Shown) -> ContentHash:
    # a hash follows one more word, so that no text can be mistaken for a hash
    pairs = tuple((name, "hash", one.hex) if isinstance(one, ContentHash) else (name, one) for name, one in shown)
    return ContentHash.of((_VIEW_TAG + canonical(pairs)).encode())


def _provenance(fields: Fields) -> Provenance:
    parents = fields["parent_refs"]
    listed = parents if isinstance(parents, tuple) else ()
    references = tuple(one for one in listed if isinstance(one, Reference))
    return Provenance(_text(fields["origin"]), _text(fields["generator"]), references)


def _inner(value: Value) -> Fields:
    if isinstance(value, Fields):
        return value
    raise BadInput("not the record of a version: a mapping is missing")


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    raise BadInput("not the record of a version: a text is missing")


def _text_or_none(value: Value) -> str | None:
    return None if value is None else _text(value)
