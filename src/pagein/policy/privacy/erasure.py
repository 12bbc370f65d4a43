"""Erasure of texts by a person's order: tombstones, detection in further texts, and redaction of journals.

Rules of this file
------------------
1. A text is recognised by a fingerprint of its first characters, rolled over each candidate, and then by its keyed
   digest. Nothing stored reveals the text to a reader without the store's secret.
2. A redacted text keeps its shape: JSON stays JSON, also inside of JSON.
"""

import contextlib
import hmac
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

from pagein.model.codec import decode_entry, encode_entry
from pagein.model.entries import (
    Entry,
    EpochEntry,
    InsertEntry,
    MessageEntry,
    NoteEntry,
    PagedOut,
    PreviewEntry,
    TurnsLeft,
)
from pagein.model.guard_notes import ReadMeasureNote
from pagein.model.journal_notes import ForgottenReadNote, ReadNote
from pagein.model.json_text import decode_json
from pagein.model.messages import Block, Image, Withheld
from pagein.model.names import ContentHash
from pagein.model.note_forms import KINDS, kind_of
from pagein.model.text_removal import PrivateSpan, Tombstone
from pagein.policy.privacy.exclusions import Finds, digest_of, replace_words, without, words_of_block

SHORTEST: Final = 6
"""Minimum characters of a text to be forgotten: a shorter text occurs in too many unrelated places."""
FORGOTTEN: Final = "forgotten"
"""Name of the span of a forgotten text."""
SAYS_SO: Final = "forgotten by order of the user"
_WINDOW: Final = 16
_LONG: Final = 200
_CLEAN: Final = 4_096
_PRIME: Final = (1 << 61) - 1
_READINGS: Final = tuple(f'"kind":"{kind_of(one)}"'.encode() for one in (ReadNote, ReadMeasureNote))
_NESTED: Final = 3
"""Depth of JSON inside JSON in a stored text, at most: the arguments of a call, in the message of an answer, in its journal entry."""
_ELLIPSES: Final = ("\u2026", "\\u2026")
_LONGEST_CUT: Final = 400
"""No text that is shown in part is longer."""
_HASH: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_NOTHING_LEFT: Final = re.compile(r"\[pagein: withheld, [\d,]+ characters, forgotten\]")
_WITHOUT_TEXT: Final = frozenset(one.name for one in KINDS if not one.has_words)
"""Kinds of notes without any words of a conversation, needed for a session to go on."""


def tombstone(text: str, key: bytes) -> Tombstone:
    """Return the tombstone of a text: digest, length and fingerprint."""
    beginning = _fingerprint(text[:_WINDOW], _base(key))
    return Tombstone(digest_of(key, text), len(text), beginning)


@dataclass(frozen=True, slots=True)
class ErasedTexts:
    """The texts that were forgotten in a store.

    Search costs nothing without tombstones, else a pass for each length of beginnings.
    """

    key: bytes = b""
    tombstones: tuple[Tombstone, ...] = ()
    _by_window: dict[int, dict[int, list[Tombstone]]] = field(default_factory=dict, compare=False)
    _clean: set[bytes] = field(default_factory=set, compare=False)
    """Digests of long texts in which nothing was found: a text is judged before it becomes an object, and before it is stored."""

    def finds(self, text: str) -> tuple[PrivateSpan, ...]:
        """Return the spans of forgotten texts in a text, in order, without overlap."""
        if not self.tombstones or len(text) < _LONG:
            return self._found(text)
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        if digest in self._clean:
            return ()
        found = self._found(text)
        if not found:
            if len(self._clean) >= _CLEAN:
                self._clean.clear()
            self._clean.add(digest)
        return found

    def _found(self, text: str) -> tuple[PrivateSpan, ...]:
        found: list[PrivateSpan] = []
        for one in sorted(self._overlapping_spans(text), key=lambda one: (one.start, -one.end)):
            if not found or one.start >= found[-1].end:
                found.append(one)
        return tuple(found)

    def _overlapping_spans(self, text: str) -> Iterator[PrivateSpan]:
        if not self._by_window:
            for one in self.tombstones:
                by_beginning = self._by_window.setdefault(min(one.chars, _WINDOW), {})
                by_beginning.setdefault(one.beginning, []).append(one)
        for window, known in self._by_window.items():
            for start, fingerprint in _find_fingerprints(text, window, _base(self.key), known):
                for one in known[fingerprint]:
                    end = start + one.chars
                    if end <= len(text) and digest_of(self.key, text[start:end]) == one.digest:
                        yield PrivateSpan(start, end, FORGOTTEN)


def finder(texts: Sequence[str], *, shortened: bool = False) -> Finds:
    """Return a function to find these texts, plain, in JSON, and in JSON inside JSON.

    shortened: also find texts as titles and displayed arguments have them: in one line, and cut off before an ellipsis
    """
    lines = [line for text in texts if (line := " ".join(text.split())) != text.strip()] if shortened else []
    forms = dict.fromkeys(form for text in (*texts, *lines) for form in forms_of(text))

    def finds(text: str) -> tuple[PrivateSpan, ...]:
        found: list[PrivateSpan] = []
        spans = sorted(
            [
                *((start, start + len(one)) for one in forms for start in _starts(text, one)),
                *(_cut_spans(text, forms) if shortened else ()),
            ]
        )
        for start, end in spans:
            if found and start < found[-1].end:
                found[-1] = PrivateSpan(found[-1].start, max(end, found[-1].end), FORGOTTEN)
            else:
                found.append(PrivateSpan(start, end, FORGOTTEN))
        return tuple(found)

    return finds


def forms_of(text: str) -> tuple[str, ...]:
    """Return a text in each form that a store may contain."""
    forms = dict.fromkeys((text,))
    for _ in range(_NESTED):
        forms |= dict.fromkeys(
            json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in forms for ascii_only in (False, True)
        )
    return tuple(forms)


def whole_text(text: str) -> tuple[PrivateSpan, ...]:
    """Return one span over the whole text."""
    return (PrivateSpan(0, len(text), FORGOTTEN),) if text else ()


def retold(text: str, finds: Finds, names: Mapping[str, str]) -> str:
    """Return a text without the found spans and with renamed contents; JSON stays JSON."""
    if names:
        text = _HASH.sub(lambda match: names.get(match[0], match[0]), text)
    found = finds(text)
    return without(text, found) if found else text


def without_texts(value: object, finds: Finds) -> object:
    """Return a value without the found spans in its texts and names of fields. References stay."""
    match value:
        case str():
            return retold(value, finds, {})
        case tuple():
            return tuple(without_texts(one, finds) for one in value)
        case Mapping():
            return {retold(str(name), finds, {}): without_texts(one, finds) for name, one in value.items()}
    return value


def is_gone(text: str) -> bool:
    """Return whether nothing is left of a redacted text."""
    return _NOTHING_LEFT.fullmatch(text) is not None


def holds_erasure(text: str) -> bool:
    """Return whether a part of a text was erased."""
    return _NOTHING_LEFT.search(text) is not None


@dataclass(frozen=True, slots=True)
class EntryRedaction:
    """Redaction of journal entries.

    key: secret for digests. finds: finds the spans to remove.
    names: new names of contents, by old name, in hexadecimal.
    gone: objects without any content left.
    wholly: whether to remove every word of the conversation.
    """

    key: bytes
    finds: Finds
    names: Mapping[str, str]
    gone: frozenset[str] = frozenset()
    wholly: bool = False

    def concerns(self, line: bytes) -> bool:
        """Return whether a line may change: whether a text, or the name of a content or of an object without one, is in it."""
        text = line.decode("utf-8", "surrogateescape")
        return self.wholly or bool(self.finds(text)) or any(one in text for one in (*self.gone, *self.names))

    def line(self, line: bytes) -> bytes:
        """Redact a line of a journal; return the same line if nothing is found.

        An unreadable line with a find becomes an empty entry.
        """
        if not self.concerns(line):
            return line
        entry = decode_entry(line)
        if not isinstance(entry, Entry):
            return b"{}"
        made = encode_entry(self._entry(entry))
        if self.wholly:
            return made
        head = f'"id":{json.dumps(entry.id)}'
        again = retold(made.decode("utf-8", "surrogateescape"), self.finds, self.names)
        return again.encode("utf-8", "surrogateescape") if head in again or head not in made.decode() else made

    def touched_path(self, line: bytes) -> str | None:
        """Return the file of a note on a reading based on redacted content; None for any different line."""
        path = path_of_reading(line)
        text = "" if path is None else line.decode("utf-8", "surrogateescape")
        return path if text and (self.finds(text) or any(one in text for one in self.names)) else None

    def _entry(self, entry: Entry) -> Entry:
        match entry.body:
            case MessageEntry(message=message):
                blocks = tuple(map(self._block, message.blocks))
                return replace(entry, body=replace(entry.body, message=replace(message, blocks=blocks)))
            case PreviewEntry(paged=paged):
                return replace(entry, body=PreviewEntry(tuple(map(self._redact_paged, paged))))
            case EpochEntry(paged=paged, restored=restored, thought=thought, turns=turns):
                body = replace(entry.body, paged=tuple(map(self._redact_paged, paged)))
                if self.wholly:
                    told = tuple(replace(one, text=without(one.text, whole_text(one.text))) for one in restored)
                    thought = None if thought is None else replace(thought, content=self._content(thought.content))
                    left = tuple(self._turns(one) for one in turns)
                    body = replace(body, restored=told, thought=thought, turns=left)
                return replace(entry, body=body)
            case InsertEntry(text=text) if self.wholly:
                return replace(entry, body=replace(entry.body, text=without(text, whole_text(text))))
            case NoteEntry(kind=kind) if self.wholly and kind not in _WITHOUT_TEXT:
                return replace(entry, body=NoteEntry(kind, "{}"))
        return entry

    def _block(self, block: Block) -> Block:
        if isinstance(block, Image):
            return replace(block, data=None) if self.wholly else block
        words = words_of_block(block)
        kept = retold(words, self.finds, {})
        if kept == words:
            return block
        withheld = block.withheld or Withheld(digest_of(self.key, words), len(words), part=True)
        return replace(replace_words(block, kept), withheld=withheld)

    def _redact_paged(self, paged: PagedOut) -> PagedOut:
        if paged.object_id not in self.gone:
            return paged
        said = f"[pagein: {paged.object_id} | {paged.tokens:,} tokens | {SAYS_SO}]"
        content = self._content(paged.content)
        if paged.part != "result":
            said = "{}"
        return replace(paged, stub=said, short=said if paged.short else "", content=content)

    def _turns(self, left: TurnsLeft) -> TurnsLeft:
        said = f"[pagein: {left.object_id} | {left.tokens:,} tokens | {SAYS_SO}]"
        return replace(left, text=said, words=(), instructions="", content=self._content(left.content))

    def _content(self, content: ContentHash) -> ContentHash:
        return ContentHash(self.names.get(content.hex, content.hex))


def path_of_reading(line: bytes) -> str | None:
    """Return the file of a note on a reading; None for any different line of a journal."""
    if not any(one in line for one in _READINGS):
        return None
    entry = decode_entry(line)
    if not isinstance(entry, Entry) or not isinstance(entry.body, NoteEntry):
        return None
    try:
        record = decode_json(entry.body.data.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    record = record.get("readcache", record) if isinstance(record, dict) else None
    path = record.get("pathKey") if isinstance(record, dict) else None
    return path if isinstance(path, str) else None


def unread(line: bytes) -> bytes:
    """Return a note on a reading without content, to make the file unknown."""
    entry = decode_entry(line)
    return encode_entry(replace(entry, body=NoteEntry.of(ForgottenReadNote()))) if isinstance(entry, Entry) else line


def texts_in(text: str, depth: int = _NESTED) -> Iterator[str]:
    """Yield the strings in a JSON object or list, also in JSON inside strings; yield any other text itself."""
    value = None
    if depth and text.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            value = decode_json(text.encode("utf-8", "surrogatepass"))
    if not isinstance(value, dict | list):
        yield text
        return
    inner: list[object] = [value]
    while inner:
        match inner.pop():
            case str(one):
                yield from texts_in(one, depth - 1)
            case dict(fields):
                inner += [*fields, *fields.values()]
            case list(items):
                inner += items


def _starts(text: str, one: str, after: int = 0, before: int | None = None) -> Iterator[int]:
    at = text.find(one, after, before)
    while at >= 0:
        yield at
        at = text.find(one, at + 1, before)


def _cut_spans(text: str, forms: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of beginnings of texts before an ellipsis."""
    ends = [start for mark in _ELLIPSES for start in _starts(text, mark)]
    for end in ends:
        for one in forms:
            longest = min(len(one) - 1, _LONGEST_CUT, end)
            for start in _starts(text, one[:SHORTEST], end - longest, end):
                if one.startswith(text[start:end]):
                    yield start, end
                    break


def _base(key: bytes) -> int:
    return int.from_bytes(hmac.new(key, b"beginnings", sha256).digest()[:7]) | 1


def _fingerprint(text: str, base: int) -> int:
    value = 0
    for one in text:
        value = (value * base + ord(one) + 1) % _PRIME
    return value


def _find_fingerprints(text: str, window: int, base: int, known: Container[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and fingerprint of each run of `window` characters with a known fingerprint."""
    if len(text) < window:
        return
    value, top = _fingerprint(text[:window], base), pow(base, window - 1, _PRIME)
    if value in known:
        yield 0, value
    # one step for each character of all that is stored from now on, so there is no call in it
    codes = [ord(one) + 1 for one in text]
    for start, (gone, new) in enumerate(zip(codes, codes[window:], strict=False), 1):
        value = ((value - gone * top) * base + new) % _PRIME
        if value in known:
            yield start, value
