"""Take the pins out of contents for their bundle: a chat has three hashes of each call, and no compression makes hashes shorter.

Rules of this file
------------------
1. The short form of a content has a mark in place of each pin of a stored version: the byte 1, the sequence of the version in hexadecimal
   digits, and a semicolon. JSON has no byte 1; what has one stays as it is.
2. A content has a short form only if the content comes out again, byte for byte.
3. Before a version is removed or changed, the bundles with marks of it are dissolved (`sql_bundles.free_pins`).
"""

import contextlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pagein.errors import CallerError, DamagedBlob
from pagein.model.names import ContentHash
from pagein.model.references import Pin, Reference
from pagein.model.values import canonical, parse_value
from pagein.model.version_hash import object_hash_of, pinned_hashes_of
from pagein.model.versions import Version
from pagein.store.sql.packed_records import unpack_record
from pagein.store.sql.sql_rows import Row, Rows, batches, decode_text, encode_text, question_marks
from pagein.store.sql.sql_versions import CHARS, OBJECT_HASH, RECORD, select_versions

PIN: Final = re.compile(r'"id":"(?:[^"\\]|\\.)*","pin":\{[^{}]*\}')
"""The part of a reference's canonical form that a pin decides."""
BEFORE, BEHIND = '{"$ref":{', "}}"
"""What is around the fields of a reference."""
_PIN_BYTES: Final = re.compile(PIN.pattern.encode())
_HAS_PIN: Final = b'"pin":{'
_MARK: Final = re.compile(rb"\x01([0-9a-f]+);")
_PINS: Final = 4_096
_pins: Final[dict[ContentHash, tuple[ContentHash, ContentHash | None]]] = {}
"""The hashes of the view and of the content that follow from an object hash, for the versions met last."""
_PINNED: Final = """SELECT sequence, at, object_hash, document.id FROM version
  JOIN document ON document.number = version.document WHERE"""


@dataclass(frozen=True, slots=True)
class ShortContents:
    """The contents of a bundle, by the numbers of their blobs, in their short forms as far as they have any.

    short: numbers of those in short forms
    versions: object hashes of the versions in the marks, by sequence
    """

    contents: Mapping[int, bytes]
    short: frozenset[int] = frozenset()
    versions: Mapping[int, bytes] = field(default_factory=dict)

    def are_stored(self, rows: Rows) -> bool:
        """Return whether the versions in the marks are in the store as they were."""
        found = _rows_of(rows, self.versions)
        return {sequence: name for sequence, (_, name, _) in found.items()} == dict(self.versions)


def note_pin(version: Version) -> None:
    """Remember the hashes of a version, which the next references to it are compared with."""
    _put_pin(version.object_hash, version.metadata_view_hash, version.content_hash)


def _put_pin(name: ContentHash, view: ContentHash, content: ContentHash | None) -> None:
    if len(_pins) >= _PINS:
        _pins.clear()
    _pins[name] = view, content


def _note_row(row: Row) -> None:
    """Remember the hashes of the version in a row, with its record, unless the record is not the one that was stored."""
    with contextlib.suppress(CallerError, DamagedBlob):
        record = unpack_record(row[RECORD])
        name = object_hash_of(record)
        if name.hex == bytes(row[OBJECT_HASH]).hex():
            _put_pin(name, *pinned_hashes_of(record, row[CHARS]))


def pinned_hashes(rows: Rows, name: ContentHash, sequence: int) -> tuple[ContentHash, ContentHash | None] | None:
    """Return the hashes of the view and of the content of a stored version; None for an unreadable one.

    name: its object hash
    """
    if name not in _pins:
        for row in select_versions(rows, "sequence = ?", (sequence,)):
            _note_row(row)
    return _pins.get(name)


def shorten_contents(rows: Rows, contents: Mapping[int, bytes]) -> ShortContents:
    """Return contents in their short forms."""
    wanted = {number: one for number, one in contents.items() if _HAS_PIN in one and b"\1" not in one}
    sequences = {
        pin: _stored_version(rows, pin) for pin in {pin for one in wanted.values() for pin in _PIN_BYTES.findall(one)}
    }
    stored = _rows_of(rows, {one for one in sequences.values() if one is not None})
    texts = _pin_texts(rows, stored)
    marks = {pin: b"\1%x;" % one for pin, one in sequences.items() if one is not None and texts.get(one) == pin}
    made = {number: _PIN_BYTES.sub(lambda pin: marks.get(pin[0], pin[0]), one) for number, one in wanted.items()}
    short = {number: one for number, one in made.items() if one != wanted[number]}
    versions = {sequence: stored[sequence][1] for one in short.values() for sequence in sequences_in(one)}
    return ShortContents({**contents, **short}, frozenset(short), versions)


def sequences_in(short: bytes) -> set[int]:
    """Return the sequences of the versions in the marks of short forms."""
    return {int(mark, 16) for mark in set(_MARK.findall(short))}


def full_contents(rows: Rows, shorts: Sequence[bytes]) -> list[bytes | DamagedBlob]:
    """Return the contents behind short forms; a failure in place of one whose version is missing or unreadable."""
    texts = _pin_texts(rows, _rows_of(rows, set().union(*map(sequences_in, shorts))))

    def full(short: bytes) -> bytes | DamagedBlob:
        missing = sequences_in(short) - texts.keys()
        if missing:
            return DamagedBlob(f"version {min(missing)}, which it refers to, is missing or damaged")
        return _MARK.sub(lambda mark: texts[int(mark[1], 16)], short)

    return [full(one) for one in shorts]


def pin_texts(rows: Rows, sequences: Iterable[int]) -> dict[int, str]:
    """Return what a reference that is pinned to a version says of it, by sequence, for readable versions."""
    return {sequence: text.decode() for sequence, text in _pin_texts(rows, _rows_of(rows, sequences)).items()}


def _rows_of(rows: Rows, sequences: Iterable[int]) -> dict[int, tuple[float, bytes, str]]:
    """Return the time, the object hash and the id of versions."""
    wanted = sorted(sequences)
    found: dict[int, tuple[float, bytes, str]] = {}
    for some in batches(wanted):
        query = f"{_PINNED} sequence IN ({question_marks(some)})"
        for sequence, at, name, object_id in rows.execute(query, some).fetchall():
            found[int(sequence)] = (float(at), bytes(name), decode_text(object_id))
    return found


def _pin_texts(rows: Rows, stored: Mapping[int, tuple[float, bytes, str]]) -> dict[int, bytes]:
    """Return what a reference that is pinned to a version says of it, for readable versions."""
    hashes = {sequence: ContentHash(name.hex()) for sequence, (_, name, _) in stored.items()}
    _note_pins(rows, [sequence for sequence, name in hashes.items() if name not in _pins])
    texts: dict[int, bytes] = {}
    for sequence, (at, _, object_id) in stored.items():
        known = pinned_hashes(rows, hashes[sequence], sequence)
        if known is not None:
            found = PIN.search(canonical(Reference(object_id, Pin(at, hashes[sequence], *known))))
            texts |= {} if found is None else {sequence: found[0].encode()}
    return texts


def _note_pins(rows: Rows, sequences: Collection[int]) -> None:
    wanted = sorted(sequences)
    for some in batches(wanted):
        for row in select_versions(rows, f"sequence IN ({question_marks(some)})", some):
            _note_row(row)


def _stored_version(rows: Rows, pin: bytes) -> int | None:
    """Return the sequence of the version that a reference is pinned to, if it is stored."""
    try:
        reference = parse_value(BEFORE + pin.decode() + BEHIND)
    except (CallerError, UnicodeDecodeError):
        return None
    if not isinstance(reference, Reference) or reference.pin is None:
        return None
    wanted = f"{_PINNED} document.id = ? AND object_hash = ? AND at = ? ORDER BY sequence LIMIT 1"
    values = (encode_text(reference.target), bytes.fromhex(reference.pin.object.hex), reference.pin.at)
    found = rows.execute(wanted, values).fetchone()
    return None if found is None else int(found[0])
