"""Whole turns evicted in a replay: their recorded blocks, and the object that holds each block."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pagein.engine.log.pageout import text_name
from pagein.engine.log.request_draft import WindowPiece
from pagein.model.entries import EpochEntry, PagedOut
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.model_calls import Block
from pagein.replay.prompt.prompt_changes import MaskedArguments, Removable, RemovedTurns


@dataclass(slots=True)
class TurnLedger:
    """The blocks of a session evicted with whole turns. objects: the holding object by ordinal of the block."""

    recording: BillableSession
    objects: dict[int, str] = field(default_factory=dict)
    # by message number: index of a recorded message, or a recalled copy
    _said: list[int | Removable | None] = field(default_factory=list)
    _gone: set[int] = field(default_factory=set)
    _blocks: dict[int, list[Block]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for block in self.recording.calls.blocks:
            self._blocks.setdefault(block.message.start, []).append(block)

    def add_message(self, what: int | Removable | None) -> None:
        """Record the next message of the session: the index of a recorded message, a recalled copy, or None for another
        kind.
        """
        self._said.append(what)

    def removed_with(self, opened: EpochEntry, window: list[WindowPiece]) -> RemovedTurns | None:
        """Return the blocks evicted with this epoch, given the window after it; None for an epoch without turns."""
        if not opened.turns:
            return None
        told = [one for piece in window for one in piece.absent]
        ordinals: list[int] = []
        copies: list[Removable] = []
        for one in told:
            fresh = [
                number for first, last in one.said for number in range(first, last + 1) if number not in self._gone
            ]
            self._gone.update(fresh)
            for number in fresh:
                what = self._said[number - 1] if 0 < number <= len(self._said) else None
                if isinstance(what, Removable):
                    copies.append(what)
                elif what is not None:
                    held = [block.ordinal for block in self._blocks_of(what)]
                    ordinals += held
                    self.objects |= dict.fromkeys(held, one.left.object_id)
        stands = float(sum(one.left.weight for one in told))
        spared = float(sum(one.tokens for one in opened.turns)) - stands
        return RemovedTurns(tuple(ordinals), tuple(copies), spared, stands)

    def shorten(self, paged: PagedOut, positions: Iterator[tuple[int, int, float]]) -> MaskedArguments | None:
        """Return the rest of a shortened long user text. positions: ordinal, position and tokens of the user's blocks."""
        for ordinal, position, tokens in positions:
            block = self.recording.calls.blocks[ordinal]
            text = block.text if block.kind == "user" and block.chars >= paged.chars else ""
            if len(text) == paged.chars and text_name(text) == paged.call_id:
                head = paged.stub.find(f"[pagein: {paged.object_id} ")
                tail = len(paged.stub) - paged.stub.rfind("[the end:]\n") - len("[the end:]\n")
                whole = Removable(("b", ordinal), position, tokens, block.born, ordinal, paged.call_id)
                shown = ((0, max(0, head - 1)), (len(text) - tail, 1 << 62))
                return MaskedArguments(whole, tokens * len(paged.stub) / len(text), shown)
        return None

    def _blocks_of(self, message: int) -> list[Block]:
        return self._blocks.get(self.recording.calls.messages.start(message), [])
