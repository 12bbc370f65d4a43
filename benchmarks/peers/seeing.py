"""The texts that a model would have missed in a program's requests: quotes, needs, recalls. The same rules as
`replay.policies.ledger`.

The ledger knows of each block whether it is there or a stub. A peer may leave parts of it, so here the texts themselves are
looked for, in everything that the request shows: a digest that keeps the line is no fault.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.peers.rendering import Rendered
from benchmarks.peers.script import Script, Turn
from benchmarks.peers.shapes import Shown, seen_text

from pagein.model.messages import ToolCall
from pagein.policy.clients.profile import quotes
from pagein.replay.policies.ledger import SLICE_TOKENS, Recall
from pagein.replay.prompt.recorded_needs import Holder, NeededText, Needs


@dataclass(frozen=True, slots=True)
class Copy:
    """A recalled text: characters first to last of a block, as they join the prompt."""

    holder: int
    tokens: float
    first: int
    last: int
    text: str


@dataclass(frozen=True, slots=True)
class Look:
    """One call: what was recalled before it, and what stood in its request before that. altered: new blocks that a peer wrote, by kind."""

    copies: tuple[Copy, ...] = ()
    quotes: int = 0
    visible: int = 0
    lost: int = 0
    rereads: int = 0
    altered: tuple[str, ...] = ()


@dataclass(slots=True)
class _Sight:
    """One request, searched only where something is not where it was."""

    script: Script
    rendered: Rendered
    copies: list[Copy]
    present: set[Shown] = field(default_factory=set)
    _text: str | None = None

    def __post_init__(self) -> None:
        self.present = {shown for message in self.rendered.messages for shown in message}

    def has(self, text: str) -> bool:
        if self._text is None:
            visible = self.script.shapes.visible
            pieces = [visible(shown) for message in self.rendered.messages for shown in message]
            self._text = "\n".join([*pieces, *(copy.text for copy in self.copies)])
        return text in self._text


class _Watch:
    """The looks of one arm at one recording, call by call."""

    def __init__(self, script: Script, recall: Recall) -> None:
        self.script, self.recall = script, recall
        self.blocks = script.recording.calls.blocks
        self.raw: dict[int, Shown] = {}  # ordinal -> what stands for it; blocks that no peer can touch are absent
        self.tokens: dict[int, float] = {}
        self.copies: list[Copy] = []
        self.known: set[Shown] = set()
        self.written: set[Shown] = set()

    def look(self, turn: Turn, rendered: Rendered, needs: Needs) -> Look:
        self._enter(turn)
        sight = _Sight(self.script, rendered, self.copies)
        total, visible, lost = self._quotes(turn, needs, sight)
        rereads = sum(not self._whole(ordinal, sight) for ordinal in needs.rereads)
        copies = tuple(map(self._copy, self._wanted(needs.needs, sight)))
        self.copies.extend(copies)
        new = sight.present - self.known - self.written
        self.written |= new
        return Look(copies, total, visible, lost, rereads, tuple(sorted(shown.kind for shown in new)))

    def _enter(self, turn: Turn) -> None:
        if turn.opens:
            self.copies, self.known, self.written = [], set(), set()
        for weighed in turn.weighed:
            self.known.add(weighed.shown)
            if weighed.ordinal >= 0:
                self.raw[weighed.ordinal] = weighed.shown
                self.tokens[weighed.ordinal] = weighed.tokens

    def _whole(self, ordinal: int, sight: _Sight) -> bool:
        shown = self.raw.get(ordinal)
        return shown is None or shown in sight.present

    def _quotes(self, turn: Turn, needs: Needs, sight: _Sight) -> tuple[int, int, int]:
        calls = (block for block in turn.sized.call.reply.blocks if isinstance(block, ToolCall))
        texts = [old for call in calls for old in quotes(call)]
        visible = lost = 0
        for quote, text in zip(needs.quotes, texts, strict=True):
            there = any(self._whole(ordinal, sight) for ordinal in quote.holders) or sight.has(text)
            there = there or bool(quote.spans and all(self._whole(ordinal, sight) for ordinal in quote.spans))
            visible += there
            lost += quote.visible_raw and not there
        return len(texts), visible, lost

    def _wanted(self, needs: Iterable[NeededText], sight: _Sight) -> Iterator[Holder]:
        wanted: dict[int, Holder] = {}
        for need in needs:
            if not self._met(need, sight) and not any(holder.ordinal in wanted for holder in need.holders):
                wanted[need.holders[-1].ordinal] = need.holders[-1]
        yield from wanted.values()

    def _met(self, need: NeededText, sight: _Sight) -> bool:
        return (
            any(self._whole(holder.ordinal, sight) for holder in need.holders)
            or any(
                copy.holder == holder.ordinal and copy.first <= holder.offset <= copy.last
                for copy in self.copies
                for holder in need.holders
            )
            or sight.has(self._needed(need))
        )

    def _needed(self, need: NeededText) -> str:
        """The text of a need, from the block that holds it."""
        holder = need.holders[-1]
        text = self._text_of(holder.ordinal)[holder.offset :]
        return (text if need.kind == "E" else text.lstrip())[: need.length].strip("\n")

    def _text_of(self, ordinal: int) -> str:
        shown = self.raw.get(ordinal)
        return self.blocks[ordinal].text if shown is None else seen_text(shown)

    def _copy(self, holder: Holder) -> Copy:
        text, tokens = self._text_of(holder.ordinal), self.tokens[holder.ordinal]
        first, last = 0, len(text)
        if self.recall == "slice" and tokens > SLICE_TOKENS:
            span = int(len(text) * SLICE_TOKENS / tokens)
            first = max(0, min(holder.offset - span // 4, len(text) - span))
            last, tokens = first + span, SLICE_TOKENS
        return Copy(holder.ordinal, tokens, first, last, text[first:last])


def look_at(script: Script, rendered: Sequence[Rendered], recall: Recall) -> list[Look]:
    """What was missed at every call."""
    watch = _Watch(script, recall)
    return [
        watch.look(turn, one, needs)
        for turn, one, needs in zip(script.turns, rendered, script.recording.needs, strict=True)
    ]
