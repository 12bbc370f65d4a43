"""The texts needed by each recorded call: a lower bound, by text, of a model's needs.

Three kinds: **L** a long line or identifier in the reply, present verbatim earlier in the window; **E** the quoted old
text of an exact-match edit; **P** a context or removed line of a patch. A need is met while any of its holders is
visible. Besides: the *quotes* of edits, with their visibility as a separate metric, and *rereads* of a file whose
earlier result may be evicted.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pagein.model.messages import FileAccess, Message, Text, ToolCall
from pagein.policy.clients.profile import patch_lines, quotes
from pagein.replay.prompt.model_calls import Block, RecordedCalls, strings_in, without_gutter

NeedKind: TypeAlias = Literal["L", "E", "P"]

SHORTEST_LINE, LONGEST_LINE = 40, 2000
_IDENTIFIER = re.compile(r"[A-Za-z0-9_\-./:@+=]{40,}")
_LINE_GUTTER = re.compile(r"\s*\d+(?:→|\t|\||: )")
_MIN_ALNUM, _MIN_DISTINCT = 16, 8
_MOST_HOLDERS = 64


@dataclass(frozen=True, slots=True)
class Holder:
    """A block with a needed text, `offset` characters from its start."""

    ordinal: int
    offset: int


@dataclass(frozen=True, slots=True)
class NeededText:
    """A text used by the reply to a call, and the blocks with this text. length: characters."""

    kind: NeedKind
    length: int
    holders: tuple[Holder, ...]


@dataclass(frozen=True, slots=True)
class Quote:
    """An exact edit quote.

    holders: blocks with the whole quote. spans: blocks with the quote only together. Both empty: not even the raw
    window showed it.
    places: last position of the quote in arguments of calls, and its position in reads of files.
    length: characters.
    """

    holders: tuple[int, ...]
    spans: tuple[int, ...] = ()
    places: tuple[Holder, ...] = ()
    length: int = 0

    @property
    def visible_raw(self) -> bool:
        """Whether the append-only window showed the quote."""
        return bool(self.holders or self.spans)


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs, quotes and rereads of a call. rereads: ordinals of the earlier results read again."""

    needs: tuple[NeededText, ...] = ()
    quotes: tuple[Quote, ...] = ()
    rereads: tuple[int, ...] = ()


NOTHING = Needs()


def needs_of(calls: RecordedCalls, opens: list[bool]) -> list[Needs]:
    """Return the needs of every call. opens: whether a new window begins at the call (nothing older is reachable)."""
    found: list[Needs] = []
    index = _Index()
    for call in calls.calls:
        if opens[call.index]:
            index = _Index()
        first, last = call.blocks
        for block in calls.blocks[first:last]:
            index.add(block)
        found.append(index.needs_in(call.reply))
    return found


class _Index:
    """The texts of a window, by line. Grows with each new block; a lookup costs the reply's length."""

    def __init__(self) -> None:
        self.lines: dict[str, list[Holder]] = {}
        self.short: dict[str, list[Holder]] = {}  # patch context: lines too short to be needs by themselves
        self.texts: list[tuple[int, str]] = []
        self.arguments: set[int] = set()
        self.partly: set[int] = set()  # blocks that may be shown in part: arguments, and reads of files
        self.accesses: dict[str, tuple[FileAccess, ...]] = {}
        self.reads: dict[str, list[tuple[int, FileAccess]]] = {}

    def add(self, block: Block) -> None:
        text = _words(block)
        if not text:
            return
        self.texts.append((block.ordinal, text))
        self._kinds(block)
        offset = 0
        for line in text.split("\n"):
            size = len(line)
            if size >= 12:  # noqa: PLR2004 shortest patch context, kind P
                bare = line.strip()
                if SHORTEST_LINE <= len(bare) <= LONGEST_LINE:
                    self.lines.setdefault(bare, []).append(Holder(block.ordinal, offset))
                elif len(bare) >= 12:  # noqa: PLR2004
                    self.short.setdefault(bare, []).append(Holder(block.ordinal, offset))
            offset += size + 1
        for match in _IDENTIFIER.finditer(text):
            self.lines.setdefault(match.group(), []).append(Holder(block.ordinal, match.start()))
        if block.kind == "result" and not block.is_error:
            for access in self.accesses.get(block.call_id, ()):
                self.reads.setdefault(access.path, []).append((block.ordinal, access))

    def _kinds(self, block: Block) -> None:
        if block.kind == "arguments":
            self.arguments.add(block.ordinal)
        if block.kind == "arguments" or block.is_read:
            self.partly.add(block.ordinal)

    def needs_in(self, reply: Message) -> Needs:
        needs: list[NeededText] = []
        quoted: list[Quote] = []
        rereads: list[int] = []
        seen: set[str] = set()
        for block in reply.blocks:
            if isinstance(block, Text):
                needs.extend(self._lines_in([block.text], seen))
            elif isinstance(block, ToolCall):
                needs.extend(self._lines_in(strings_in(block.arguments), seen))
                for old in quotes(block):
                    quote = self._quote(old)
                    quoted.append(quote)
                    if quote.holders:
                        needs.append(NeededText("E", len(old), tuple(self._at(old, quote.holders))))
                needs.extend(self._patch_needs(patch_lines(block)))
                rereads.extend(self._reread(block))
        return Needs(tuple(needs), tuple(quoted), tuple(rereads)) if needs or quoted or rereads else NOTHING

    def _lines_in(self, texts: Iterable[str], seen: set[str]) -> Iterator[NeededText]:
        for text in texts:
            if len(text) < SHORTEST_LINE:
                continue
            for line in text.split("\n"):
                if len(line) < SHORTEST_LINE:
                    continue
                bare = _LINE_GUTTER.sub("", line, count=1).strip()
                for part in (bare, *_IDENTIFIER.findall(bare)):
                    holders = self.lines.get(part)
                    if holders and part not in seen and is_distinctive(part):
                        seen.add(part)
                        yield NeededText("L", len(part), tuple(holders[-_MOST_HOLDERS:]))

    def _quote(self, old: str) -> Quote:
        found = [(ordinal, text) for ordinal, text in self.texts if old in text]
        holders = tuple(ordinal for ordinal, _ in found)
        if holders or "\n" not in old:
            places = tuple(
                Holder(ordinal, self._place(ordinal, text, old)) for ordinal, text in found if ordinal in self.partly
            )
            return Quote(holders, places=places, length=len(old))
        return Quote((), self._blocks_across(old))

    def _blocks_across(self, old: str) -> tuple[int, ...]:
        """Return the blocks that show the text only across their boundaries: visible texts are joined by a newline."""
        visible = "\n".join(text for _, text in self.texts)
        start = visible.find(old)
        if start < 0:
            return ()
        together, position = [], 0
        for ordinal, text in self.texts:
            if position < start + len(old) and position + len(text) > start:
                together.append(ordinal)
            position += len(text) + 1
        return tuple(together)

    def _at(self, old: str, holders: tuple[int, ...]) -> Iterator[Holder]:
        texts = dict(self.texts)
        for ordinal in holders[-_MOST_HOLDERS:]:
            yield Holder(ordinal, self._place(ordinal, texts[ordinal], old))

    def _place(self, ordinal: int, text: str, old: str) -> int:
        """Return the offset of a text in a block: in arguments the last, because an edit writes the new text after the
        old text.
        """
        return text.rfind(old) if ordinal in self.arguments else text.find(old)

    def _patch_needs(self, lines: tuple[str, ...]) -> Iterator[NeededText]:
        for line in lines:
            holders = self.short.get(line.strip())
            if holders:
                yield NeededText("P", len(line), tuple(holders[-_MOST_HOLDERS:]))

    def _reread(self, call: ToolCall) -> Iterator[int]:
        """Yield earlier results whose lines this call reads again: the newest of each path."""
        reading = tuple(access for access in call.accesses if access.op == "read")
        if reading:
            self.accesses[call.id] = reading
        for access in reading:
            for ordinal, earlier in reversed(self.reads.get(access.path, [])):
                if _overlap(access, earlier):
                    yield ordinal
                    break


def _words(block: Block) -> str:
    """Return the text of a block that can recur: the strings of arguments, a result without its line numbers."""
    text = block.text
    if block.kind == "arguments" and text:
        return "\n".join(strings_in(text))
    return without_gutter(text) if block.kind == "result" else text


def is_distinctive(line: str) -> bool:
    """Return whether a line is distinctive enough that a recurrence is no accident."""
    return len(set(line)) > _MIN_DISTINCT and sum(map(str.isalnum, line)) >= _MIN_ALNUM


def _overlap(one: FileAccess, other: FileAccess) -> bool:
    first = max(one.start or 1, other.start or 1)
    last = min(one.end or 1 << 62, other.end or 1 << 62)
    return first <= last
