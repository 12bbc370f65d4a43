"""The changes made by a policy to a prompt before a call: removed blocks and their replacements."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Removable:
    """A block that may leave the prompt: a tool result, arguments, or a recalled copy of a result.

    position: place in the prompt.
    born: index of the first call that saw the block.
    holder: ordinal of the original block.
    first, last: the range of the original shown, characters.
    """

    key: tuple[object, ...]
    position: int
    tokens: float
    born: int
    holder: int
    call_id: str
    first: int = 0
    last: int = 1 << 62
    is_arguments: bool = False


@dataclass(frozen=True, slots=True)
class MaskedArguments:
    """Arguments with some texts masked.

    tokens: size of the rest.
    shown: character ranges of the texts that stay.
    """

    block: Removable
    tokens: float
    shown: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PreviewedBlock:
    """A block that enters as a preview of `tokens`. head, tail: characters shown at the beginning and the end."""

    block: Removable
    tokens: float
    head: int
    tail: int


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """A repeated read that enters as a shorter answer and depends on other text in the window.

    tokens: size of the answer.
    shown: character ranges of the read contained in the answer itself.
    again: ordinal of an earlier read with the same whole text; None for a marker or a diff.
    """

    block: Removable
    tokens: float
    shown: tuple[tuple[int, int], ...] = ()
    again: int | None = None


@dataclass(frozen=True, slots=True)
class RemovedTurns:
    """Blocks evicted with whole turns.

    ordinals: the recorded blocks.
    copies: the recalled copies.
    spared: tokens saved, approximately.
    stands: tokens of the texts in place of all turns evicted so far.
    """

    ordinals: Sequence[int]
    copies: Sequence[Removable]
    spared: float
    stands: float


@dataclass(frozen=True, slots=True)
class Hide:
    """The changes of a policy before a call.

    stubs: each evicted block with the tokens of its stub.
    previews: results that enter as previews.
    rereads: repeated reads answered by text in the window.
    masked: arguments with masked texts.
    notices: tokens of inserts at the end.
    compact: whether the policy compacts the window.
    finished: thinking after the first evicted block and before the call of this index is removed; 0: none.
    gone: blocks evicted with whole turns.
    is_uncached: whether the prompt up to the last cache breakpoint of the request before stays as it was.
    tail: position of the first block after this request's last cache breakpoint; 0: the breakpoint is at the end.
    """

    stubs: Sequence[tuple[Removable, float]] = ()
    previews: Sequence[PreviewedBlock] = ()
    rereads: Sequence[ReadAgain] = ()
    masked: Sequence[MaskedArguments] = ()
    notices: float = 0.0
    compact: bool = False
    reason: str = ""
    finished: int = 0
    gone: RemovedTurns | None = None
    is_uncached: bool = False
    tail: int = 0

    @property
    def changes_sent(self) -> bool:
        """Whether a part of the prompt sent before changes."""
        return bool(self.stubs or self.masked or self.gone)

    @property
    def rewrites(self) -> bool:
        """Whether a part of the prompt changes that the request before left in the cache."""
        return self.changes_sent and not self.is_uncached


NOTHING = Hide()
