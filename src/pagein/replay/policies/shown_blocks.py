"""What a prompt still shows of the blocks of a recording: originals, copies, previews, answers to rereads."""

from dataclasses import dataclass, field

from pagein.replay.prompt.prompt_changes import Removable
from pagein.replay.prompt.recorded_needs import Holder, NeededText


@dataclass(slots=True)
class ShownBlocks:
    """Blocks by ordinal, since the window began.

    gone_before: blocks with lower ordinals are in no window any more (compaction by the policy).
    hidden: originals replaced by a stub.
    cover: character ranges still shown of previewed originals and masked arguments.
    answers: answered reads, each with the earlier read shown again.
    copies: recalled copies.
    """

    gone_before: int = 0
    hidden: dict[int, Removable] = field(default_factory=dict)
    cover: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    answers: dict[int, int | None] = field(default_factory=dict)
    copies: dict[int, list[Removable]] = field(default_factory=dict)

    def is_whole(self, ordinal: int) -> bool:
        """Return whether the whole block is visible unchanged."""
        return ordinal >= self.gone_before and ordinal not in self.hidden

    def is_shown(self, ordinal: int, chars: int) -> bool:
        """Return whether the whole block, of so many characters, is visible, in place or as a recalled copy."""
        return self.is_whole(ordinal) or any(
            copy.first == 0 and copy.last >= chars for copy in self.copies.get(ordinal, ())
        )

    def is_covered(self, holder: Holder, length: int) -> bool:
        """Return whether a preview or the rest of masked arguments shows this text."""
        runs = self.cover.get(holder.ordinal, ())
        return any(first <= holder.offset and (holder.offset + length <= last) for first, last in runs)

    def meets(self, need: NeededText) -> bool:
        """Return whether a needed text is visible."""
        return any(
            self.is_whole(holder.ordinal)
            or self.is_covered(holder, need.length)
            or any(copy.first <= holder.offset <= copy.last for copy in self.copies.get(holder.ordinal, ()))
            for holder in need.holders
        )
