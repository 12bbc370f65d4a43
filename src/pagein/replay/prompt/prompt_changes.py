"""What a policy does to a prompt before a call: which blocks leave it, and what stands in their place."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Removable:
    """A block that may leave the prompt: a tool result, or the copy of one that was recalled.

    position: where it stands. born: index of the first call that saw it. holder: ordinal of the original block.
    first, last: the characters of the original that it shows.
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
    """Arguments some texts in which leave. tokens: what stays; shown: runs of characters of their texts that stay."""

    block: Removable
    tokens: float
    shown: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PreviewedBlock:
    """A block that enters as a preview of `tokens`. head, tail: characters of it that stand at its beginning and end."""

    block: Removable
    tokens: float
    head: int
    tail: int


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """A read that enters as an answer of `tokens` resting on other text in the window. shown: runs of characters of it that the answer holds itself.

    again: ordinal of an earlier read whose whole text the answer is, None for a marker or a diff.
    """

    block: Removable
    tokens: float
    shown: tuple[tuple[int, int], ...] = ()
    again: int | None = None


@dataclass(frozen=True, slots=True)
class RemovedTurns:
    """Blocks that leave with whole turns. ordinals: of the recorded ones; copies: of what was recalled. spared: tokens, about.

    stands: tokens of the texts that tell of all that left so, this time and before.
    """

    ordinals: Sequence[int]
    copies: Sequence[Removable]
    spared: float
    stands: float


@dataclass(frozen=True, slots=True)
class Hide:
    """What a policy does before a call: the stub that replaces each block, in tokens; what enters as a preview; reads that are answered
    by what stands in the window; arguments that are masked; or a compaction. notices: tokens of texts of its own at the end.

    gone: what leaves with whole turns. finished: with what leaves goes what was thought behind it and before the call of this index; 0: none of it.
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

    @property
    def rewrites(self) -> bool:
        """Whether what was sent before changes."""
        return bool(self.stubs or self.masked or self.gone)


NOTHING = Hide()
