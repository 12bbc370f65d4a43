"""What must not be stored is kept without it: calls that may show an excluded file, and their results (law 9).

Rules of this file
------------------
1. What is journaled is the message without such text, in this process as in any other: so the state of a branch is the same before
   and after a restart (law 6). Beside the text stand its length, which weights need, and its keyed digest, which tells it from others.
2. The window shows the text as it came. The process that saw it remembers it for that; where a client tells its conversation anew with
   each request nobody needs to.
"""

import hmac
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, TypeAlias

from pagein.model.messages import Block, Message, Text, ToolCall, ToolResult, Withheld
from pagein.policy.exclusions import EXCLUDED, may_show_excluded

WITHHELD: Final = "[pagein: not kept, as it may show a file that must not be stored]"
_NO_ARGUMENTS: Final = "{}"
_DIGITS: Final = 32
_Place: TypeAlias = tuple[type[Block], str]


def is_withheld(block: Block) -> bool:
    """Whether a block was kept without all of its text. Journals of older versions tell it by the text alone."""
    match block:
        case Text(withheld=withheld) | ToolCall(withheld=withheld):
            return withheld is not None
        case ToolResult(withheld=withheld, text=text):
            return withheld is not None or text == WITHHELD
    return False


@dataclass(slots=True)
class Withholding:
    """What is kept of the messages of one session.

    key: gives the secret that digests are keyed with; asked only where something is withheld. shown: digests of texts that are left out
    wherever a result holds them, because they were read from an excluded file by a name that does not tell.
    """

    patterns: tuple[str, ...] = EXCLUDED
    key: Callable[[], bytes] = bytes
    shown: set[str] = field(default_factory=set)
    _seen: dict[_Place, tuple[Block, Block]] = field(default_factory=dict)

    def of(self, message: Message, private: Collection[str] = ()) -> Message:
        """The message as it is kept; the same one where it says nothing that must not be. private: calls whose results are left out."""
        if not any(isinstance(block, ToolCall | ToolResult) for block in message.blocks):
            return message
        asked = {block.id for block in message.blocks if isinstance(block, ToolCall) and self._is_private(block)}
        blocks = tuple(self._block(block, asked, private) for block in message.blocks)
        return message if _same(blocks, message.blocks) else replace(message, blocks=blocks)

    def shows(self, message: Message) -> Message:
        """A message of the window with what was left out of it, as far as this process saw that."""
        if not self._seen or not any(is_withheld(block) for block in message.blocks):
            return message
        blocks = tuple(self._shown(block) for block in message.blocks)
        return message if _same(blocks, message.blocks) else replace(message, blocks=blocks)

    def add(self, text: str) -> str:
        """An excluded file was read, and showed this text. Returns the digest that tells it again."""
        digest = self._digest(text)
        self.shown.add(digest)
        return digest

    def inherit(self, other: "Withholding") -> None:
        """Know what another session of this process saw."""
        self.shown |= other.shown
        self._seen |= other._seen  # noqa: SLF001 -- of its own class

    def _is_private(self, call: ToolCall) -> bool:
        return call.withheld is not None or may_show_excluded(call, self.patterns)

    def _block(self, block: Block, asked: Collection[str], private: Collection[str]) -> Block:
        match block:
            case ToolCall(withheld=None) if block.id in asked:
                return self._kept(block, replace(block, arguments=_NO_ARGUMENTS), block.arguments)
            case ToolResult(withheld=None, text=text) if block.text != WITHHELD and (
                block.call_id in asked or block.call_id in private or (self.shown and self._digest(text) in self.shown)
            ):
                kept = replace(block, text=WITHHELD, images=(), before=None, shown=None)
                return self._kept(block, kept, text, *(image.data or "" for image in block.images))
        return block

    def _kept(self, block: ToolCall | ToolResult, kept: ToolCall | ToolResult, *texts: str) -> ToolCall | ToolResult:
        digest = self._digest(*texts)
        marked = replace(kept, withheld=Withheld(digest, len(texts[0])))
        self._seen[type(block), digest] = block, marked
        return marked

    def _shown(self, block: Block) -> Block:
        match block:
            case ToolCall(withheld=Withheld(digest=digest)):
                said, _ = self._seen.get((ToolCall, digest), (None, None))
                if isinstance(said, ToolCall):
                    return replace(block, arguments=said.arguments, withheld=None)
            case ToolResult(withheld=Withheld(digest=digest)):
                said, _ = self._seen.get((ToolResult, digest), (None, None))
                if isinstance(said, ToolResult):
                    whole = replace(block, text=said.text, images=said.images, withheld=None)
                    return replace(whole, shown=said.shown, before=said.before)
            case Text(
                withheld=Withheld(digest=digest), text=text
            ):  # a result or call that could not stand where it stood
                found = self._seen.get((ToolResult, digest)) or self._seen.get((ToolCall, digest))
                if found is not None:
                    said, kept = found
                    return replace(block, text=text.removesuffix(_words(kept)) + _words(said), withheld=None)
        return block

    def _digest(self, *texts: str) -> str:
        return digest_of(self.key(), *texts)


def _words(block: Block) -> str:
    return block.arguments if isinstance(block, ToolCall) else block.text if isinstance(block, ToolResult) else ""


def digest_of(key: bytes, *texts: str) -> str:
    """The keyed digest of a text that is not stored."""
    made = hmac.new(key, digestmod=sha256)
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        made.update(b"%d:" % len(raw))
        made.update(raw)
    return made.hexdigest()[:_DIGITS]


def _same(some: Iterable[Block], others: Iterable[Block]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))
