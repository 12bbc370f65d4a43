"""Content that must not be stored (law 9), and the redaction from messages: excluded files, calls about them, keys.

Rules of this file
------------------
1. Content of excluded files, and shell output that shows them, is never stored; hence it is never evicted either and
   stays in the window. The test errs on the side of keeping: a command that merely names such a file counts. Of an edit
   or a write only the path counts: its text may be code, in which `x.key` is a field and no file.
2. Keys are told by their shape (`key_shapes`). A text without the words of any shape costs one look; any other text one
   more look for each shape with a word in it, or, if that is much, for all shapes together and then for each that is
   there. Each look is linear in the text.
3. The journal holds the message without such text, in this process as in any other: so the state of a branch is the
   same before and after a restart (law 6). In place of the text the journal holds its length, which weights need, and
   its keyed digest, which tells it from other texts.
4. The window shows the original text. The process that saw the text remembers it for that purpose; a client that sends
   its whole conversation with each request makes this needless.
5. A block stored without some of its text never leaves the window: a text that cannot be stored cannot be recalled (law
   1).
"""

import fnmatch
import functools
import hmac
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, TypeAlias

from pagein.model.arguments import field_names, texts_in
from pagein.model.json_text import decode_json, encode_json
from pagein.model.messages import Block, Image, Message, Other, Text, Thinking, ToolCall, ToolResult, Withheld
from pagein.model.text_removal import PrivateSpan
from pagein.policy.privacy.key_shapes import (
    SHAPES,
    Shape,
    compile_expression,
    expressions_of_shapes,
    is_key,
    words_of_shapes,
)

EXCLUDED: Final = (
    ".env*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.crt",
    "*.cer",
    "*.der",
    "*.pk8",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".npmrc",
    ".netrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
)
"""Patterns of file names with content that is never stored, matched with the last part of a path in any case."""

_COMMANDS: Final = frozenset({"command", "cmd"})
_WORD: Final = re.compile(r"""[^\s"'`\\/=:;,|&<>(){}\[\]]+""")
_WILD: Final = re.compile(r"\[[^\]]*\]?|[*?]")
_TELLING: Final = 512
"""Bytes of a value that are examined."""
_WORTH_ONE_LOOK: Final = 1 << 20
"""Bytes in all looks for single shapes from which a look for all shapes together comes first.

A large file of program code has words of some ten shapes, and mostly no key.
"""
WITHHELD: Final = "[pagein: not kept, as it may show a file that must not be stored]"
_NO_ARGUMENTS: Final = "{}"
_DIGITS: Final = 32
_Worded: TypeAlias = Text | Thinking | ToolCall | ToolResult | Other
_Place: TypeAlias = tuple[type[Block], str]
Finds: TypeAlias = Callable[[str], Sequence[PrivateSpan]]
"""A function that returns the spans of a text unfit for the store, in order."""


# --- excluded files ---


def is_excluded(path: str, patterns: Iterable[str] = EXCLUDED) -> bool:
    """Return whether the last component of this path matches an excluded pattern."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return _names(tuple(patterns)).fullmatch(name.lower()) is not None


@functools.lru_cache(maxsize=16)
def _names(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern.lower()) for pattern in patterns) or r"(?!)")


@functools.lru_cache(maxsize=16)
def _hints(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the longest fixed part of each pattern, for a cheap first search."""
    return tuple(max(_WILD.split(pattern.lower()), key=len) for pattern in patterns)


@functools.lru_cache(maxsize=64)  # asked when the call enters, and when its result enters, is settled and answered
def may_show_excluded(call: ToolCall, patterns: tuple[str, ...] = EXCLUDED) -> bool:
    """Return whether the result of this call may contain an excluded file."""
    if call.withheld is not None and not call.withheld.part:
        return True
    if any(is_excluded(access.path, patterns) for access in call.accesses):
        return True
    if _is_change_of_files(call):
        return False
    arguments = call.arguments.lower()
    if "\\u" not in arguments and not any(hint in arguments for hint in _hints(patterns)):
        return False
    # the raw text too, for arguments that are not JSON; and each text whole, for names with blanks in them
    texts = (call.arguments, *texts_in(call.arguments))
    return any(
        is_excluded(text, patterns) or any(is_excluded(word, patterns) for word in _WORD.findall(text))
        for text in texts
    )


def _is_change_of_files(call: ToolCall) -> bool:
    """Return whether a call does nothing but edit or write the files that it names, and runs no command."""
    named = all(one.via == "native" and one.op in ("edit", "write") for one in call.accesses)
    return bool(call.accesses) and named and _COMMANDS.isdisjoint(field_names(call.arguments))


# --- keys ---


def keys_in(text: str) -> tuple[PrivateSpan, ...]:
    """Return the spans of the keys in a text, in order, without overlap."""
    raw = text.encode("utf-8", "surrogatepass")
    found: list[PrivateSpan] = []
    end = -1
    for start, stop, name in _all_spans(raw):
        if start < end:
            if stop > end:
                found[-1] = PrivateSpan(found[-1].start, stop, found[-1].shape)
                end = stop
            continue
        found.append(PrivateSpan(start, stop, name))
        end = stop
    return tuple(found if len(raw) == len(text) else _in_characters(raw, found))


def holds_keys(raw: bytes) -> bool:
    """Return whether a text, given in UTF-8, has keys."""
    return bool(_all_spans(raw))


def _all_spans(raw: bytes) -> list[tuple[int, int, str]]:
    words, shapes = words_of_shapes()
    likely: Collection[Shape] = dict.fromkeys(shapes[place] for place in words.Match(raw) or ())
    if len(raw) * len(likely) > _WORTH_ONE_LOOK:
        likely = [SHAPES[place] for place in expressions_of_shapes().Match(raw) or ()]
    return sorted({span for shape in likely for span in _spans(shape, raw)})


def _spans(shape: Shape, raw: bytes) -> Iterator[tuple[int, int, str]]:
    for match in compile_expression(shape.expression).finditer(raw):
        start, end = match.span(match.lastindex)
        if is_key(shape, raw[start : min(end, start + _TELLING)].decode("utf-8", "replace")):
            yield start, end, shape.name


def _in_characters(raw: bytes, found: list[PrivateSpan]) -> Iterator[PrivateSpan]:
    for one in found:
        start = len(raw[: one.start].decode("utf-8", "surrogatepass"))
        yield PrivateSpan(start, start + len(raw[one.start : one.end].decode("utf-8", "surrogatepass")), one.shape)


# --- redaction ---


def is_withheld(block: Block) -> bool:
    """Return whether a block was stored without some of its text.

    Journals of older versions show this by the text alone.
    """
    if isinstance(block, ToolResult) and block.text == WITHHELD:
        return True
    return not isinstance(block, Image) and block.withheld is not None


def without(text: str, found: Sequence[PrivateSpan]) -> str:
    """Return a text with a note of the length in place of each found span."""
    parts: list[str] = []
    end = 0
    for one in found:
        parts += text[end : one.start], f"[pagein: withheld, {one.end - one.start:,} characters, {one.shape}]"
        end = one.end
    return "".join((*parts, text[end:]))


def without_in_json(text: str, finds: Finds) -> str:
    """Redact the strings of a JSON text; treat any other text as plain."""
    try:
        value = decode_json(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return without(text, finds(text))
    try:
        kept = _without(value, finds)
    except RecursionError:
        return _NO_ARGUMENTS
    return text if kept == value else encode_json(kept).decode("utf-8", "surrogatepass")


def _without(value: object, finds: Finds) -> object:
    if isinstance(value, str):
        return without(value, finds(value))
    if isinstance(value, dict):
        return {without(str(name), finds(str(name))): _without(inner, finds) for name, inner in value.items()}
    return [_without(inner, finds) for inner in value] if isinstance(value, list) else value


@dataclass(slots=True)
class SessionRedaction:
    """Redaction of one session's messages.

    patterns: names of excluded files.
    key: returns the secret for digests; called only where something is redacted.
    finds: finds other text unfit for the store.
    shown: digests of texts to redact in any result, because they were read from an excluded file through a harmless
        name.
    """

    patterns: tuple[str, ...] = EXCLUDED
    key: Callable[[], bytes] = bytes
    finds: Finds = keys_in
    shown: set[str] = field(default_factory=set)
    _seen: dict[_Place, tuple[_Worded, _Worded]] = field(default_factory=dict)

    def of(self, message: Message, private: Collection[str] = ()) -> Message:
        """Return the message as stored; the same object if nothing needs redaction.

        private: calls with results to leave out.
        """
        asked = {block.id for block in message.blocks if isinstance(block, ToolCall) and self._is_private(block)}
        blocks = tuple(self._block(block, asked, private) for block in message.blocks)
        return message if _same(blocks, message.blocks) else replace(message, blocks=blocks)

    def shows(self, message: Message) -> Message:
        """Return a message of the window with its redacted text, as far as this process saw the text."""
        if not self._seen or not any(is_withheld(block) for block in message.blocks):
            return message
        blocks = tuple(self._restore(block) for block in message.blocks)
        return message if _same(blocks, message.blocks) else replace(message, blocks=blocks)

    def add(self, text: str) -> str:
        """Record the text of an excluded file, and return its digest."""
        digest = digest_of(self.key(), text)
        self.shown.add(digest)
        return digest

    def inherit(self, other: "SessionRedaction") -> None:
        """Add the texts that another session of this process saw."""
        self.shown |= other.shown
        self._seen |= other._seen  # noqa: SLF001 -- of its own class

    def _is_private(self, call: ToolCall) -> bool:
        return may_show_excluded(call, self.patterns)

    def _block(self, block: Block, asked: Collection[str], private: Collection[str]) -> Block:
        if isinstance(block, Image) or is_withheld(block):
            return block
        if isinstance(block, ToolCall) and block.id in asked:
            return self._withhold(block, replace(block, arguments=_NO_ARGUMENTS))
        if isinstance(block, ToolResult) and (
            block.call_id in asked
            or block.call_id in private
            or (self.shown and digest_of(self.key(), block.text) in self.shown)
        ):
            return self._withhold(block, replace(block, text=WITHHELD, images=(), before=None, shown=None))
        words = words_of_block(block)
        kept = without_in_json(words, self.finds) if isinstance(block, ToolCall | Other) else self._plain(words)
        return block if kept == words else self._withhold(block, replace_words(block, kept), part=True)

    def _plain(self, text: str) -> str:
        found = self.finds(text)
        return without(text, found) if found else text

    def _withhold(self, block: _Worded, kept: _Worded, *, part: bool = False) -> _Worded:
        images = block.images if isinstance(block, ToolResult) else ()
        digest = digest_of(self.key(), words_of_block(block), *(image.data or "" for image in images))
        marked = replace(kept, withheld=Withheld(digest, len(words_of_block(block)), part))
        self._seen[type(block), digest] = block, marked
        return marked

    def _restore(self, block: Block) -> Block:
        if isinstance(block, Image) or block.withheld is None:
            return block
        digest = block.withheld.digest
        found = self._seen.get((type(block), digest))
        if found is None:  # a result or call in an invalid place was turned into text
            found = self._seen.get((ToolResult, digest)) or self._seen.get((ToolCall, digest))
            if found is None or not isinstance(block, Text):
                return block
            said, kept = found
            return replace(
                block, text=block.text.removesuffix(words_of_block(kept)) + words_of_block(said), withheld=None
            )
        said, _ = found
        whole = replace(replace_words(block, words_of_block(said)), withheld=None)
        if isinstance(whole, ToolResult) and isinstance(said, ToolResult):
            return replace(whole, images=said.images, shown=said.shown, before=said.before)
        return whole


def words_of_block(block: _Worded) -> str:
    """Return the text of a block of any kind."""
    match block:
        case ToolCall():
            return block.arguments
        case Other():
            return block.json
        case _:
            return block.text


def replace_words(block: _Worded, words: str) -> _Worded:
    """Return the block with another text."""
    match block:
        case ToolCall():
            return replace(block, arguments=words)
        case Other():
            return replace(block, json=words)
        case _:
            return replace(block, text=words)


def digest_of(key: bytes, *texts: str) -> str:
    """Return the keyed digest of a text that is not stored."""
    made = hmac.new(key, digestmod=sha256)
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        made.update(b"%d:" % len(raw))
        made.update(raw)
    return made.hexdigest()[:_DIGITS]


def _same(some: Iterable[Block], others: Iterable[Block]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))
