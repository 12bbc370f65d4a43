"""Erasure of texts by a person's order: where they are, and redaction of journals.

A redacted text keeps its shape: JSON stays JSON, also inside of JSON.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from pagein.model.text_removal import PrivateSpan
from pagein.policy.privacy.erased_texts import FORGOTTEN, joined_spans
from pagein.policy.privacy.exclusions import Finds, digest_of, replace_words, without, words_of_block

SHORTEST: Final = 6
"""Minimum characters of a text to be forgotten: a shorter text occurs in too many unrelated places."""
SAYS_SO: Final = "forgotten by order of the user"
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


def finder(texts: Sequence[str], *, shortened: bool = False) -> Finds:
    """Return a function to find these texts, plain, in JSON, and in JSON inside JSON.

    shortened: also find texts as titles and displayed arguments have them: in one line, and cut off before an ellipsis
    """
    lines = [line for text in texts if (line := " ".join(text.split())) != text.strip()] if shortened else []
    forms = dict.fromkeys(form for text in (*texts, *lines) for form in forms_of(text))

    def finds(text: str) -> tuple[PrivateSpan, ...]:
        spans = ((start, start + len(one)) for one in forms for start in _starts(text, one))
        return joined_spans((*spans, *(_cut_spans(text, forms) if shortened else ())))

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
        if paged.part == "arguments":
            said = json.dumps({"forgotten": said})
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
