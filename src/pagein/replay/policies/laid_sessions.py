"""A recorded session in a layout: prompts, shown texts, and recalls.

The layouts themselves make the prompts. A text of the recording has the tokens of its recorded block.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from pagein.model.entries import MessageEntry, NoteEntry
from pagein.model.laid_prompts import LaidPrompt, LayoutFacts, PromptContents
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.pool_notes import PoolAct, PoolNote
from pagein.policy.clients.known_files import absolute_path
from pagein.policy.layouts.pooled import PooledLayout
from pagein.policy.layouts.pooled_fold import PooledFold, PooledRequest
from pagein.policy.layouts.pooled_window import PAGEIN, PooledRules
from pagein.policy.pools.pool_fold import START, PoolFold
from pagein.policy.tiers.frozen_order import CacheTerms
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.model_calls import Block, strings_in, without_gutter
from pagein.replay.prompt.prompt_sizes import SizedCall

ACTIVATE: Final = "activate"
POOL_TOOLS: Final = 640.0
"""Tokens of the definitions of the tools for pools, as they are sent."""


@dataclass(frozen=True, slots=True)
class WantedText:
    """A text of the recording that a call needs: some characters of a block, or the whole block.

    offset: place in the block, as `replay.prompt.recorded_needs` counts. length: characters; None for the whole block.
    """

    ordinal: int
    offset: int = 0
    length: int | None = None


class LaidSession(Protocol):
    """A recorded session in a layout, one call after another."""

    @property
    def name(self) -> str:
        """The name of the policy in the bill."""
        ...

    @property
    def overhead(self) -> float:
        """Tokens that the layout adds to the prompt prefix."""
        ...

    def begin(self) -> None:
        """Begin a new window, as after a compaction."""
        ...

    def enter(self, sized: SizedCall, *, cold: bool) -> None:
        """Take the new blocks of a call. cold: whether the provider's cache has expired."""
        ...

    def prompt(self) -> LaidPrompt:
        """Return the prompt of the request."""
        ...

    def shows(self, text: WantedText) -> bool:
        """Return whether the prompt shows a text of the recording."""
        ...

    def bring_back(self, wanted: Sequence[WantedText]) -> None:
        """Let the model bring texts back, for the next request."""
        ...

    def left(self) -> Iterable[int]:
        """Return the results of which the text has left since the last call, by ordinal, each once."""
        ...

    @property
    def epochs(self) -> int:
        """How often earlier bytes have changed."""
        ...

    @property
    def replaced(self) -> int:
        """The number of results that stand as references."""
        ...


class RecordedConversation:
    """The conversation of a recording's window, with the sizes of its texts."""

    def __init__(self, recording: BillableSession) -> None:
        self.blocks = recording.calls.blocks
        self._per_char = 1 / recording.chars_per_token
        self.messages: list[Message] = []
        self._sizes: dict[str, float] = {}
        self._hidden: list[str] = []

    def clear(self) -> None:
        """Begin a new window."""
        self.messages.clear()
        self._hidden.clear()

    def count(self, text: str) -> float:
        """Return the tokens of a text: those of its recorded block, or an estimate by the blocks of the same call."""
        known = self._sizes.get(text)
        if known is None:
            head, _, rest = text.partition("\n")
            inner = self._sizes.get(rest)
            known = (len(text) if inner is None else len(head)) * self._per_char + (inner or 0.0)
            self._sizes[text] = known
        return known

    def set_size(self, text: str, tokens: float) -> None:
        """Set the tokens of a text."""
        self._sizes[text] = tokens

    def add(self, sized: SizedCall) -> None:
        """Add the messages of the new blocks. Hidden tokens follow as a text of their own."""
        first, last = sized.call.blocks
        chars = sum(block.chars for block in self.blocks[first:last])
        self._per_char = sum(sized.blocks) / chars if chars else self._per_char
        held: tuple[object, Message] | None = None
        for block, tokens in zip(self.blocks[first:last], sized.blocks, strict=True):
            message = block.message.get()
            part = message.blocks[block.place]
            self._sizes[_text_of(block)] = tokens
            if held is not None and held[0] == block.message:
                held = held[0], replace(held[1], blocks=(*held[1].blocks, part))
                self.messages[-1] = held[1]
            else:
                held = block.message, replace(message, blocks=(part,))
                self.messages.append(held[1])
        if sized.hidden:
            text = f"hidden tokens of call {sized.call.index}"
            self._sizes[text] = sized.hidden
            self._hidden.append(text)
            self.messages.append(Message("user", (Text(text, injected="hidden"),)))
        self._take_back(sized.shrunk)

    def _take_back(self, tokens: float) -> None:
        for text in reversed(self._hidden):
            taken = min(tokens, self._sizes[text])
            self._sizes[text] -= taken
            tokens -= taken

    def words(self, text: WantedText) -> str:
        """Return the characters of a wanted text."""
        block = self.blocks[text.ordinal]
        words = block.text
        if block.kind == "arguments":
            words = "\n".join(strings_in(words))
        elif block.kind == "result":
            words = without_gutter(words)
        return words if text.length is None else words[text.offset : text.offset + text.length]


def _text_of(block: Block) -> str:
    return block.text if block.text or block.kind != "user" else "x"


class PooledSession:
    """The pooled layout: pools that the recorded reads, edits and results drive. A model of the session recalls by
    `activate`.
    """

    overhead = POOL_TOOLS

    def __init__(
        self, recording: BillableSession, prices: Prices, rules: PooledRules = PAGEIN, *, name: str = "pooled"
    ) -> None:
        self.name = name
        self._talk = RecordedConversation(recording)
        terms = CacheTerms(prices.read, prices.write_5m, prices.cache.model != "breakpoints")
        self._fold = PooledFold(PoolFold(recording.head.id), rules, terms)
        self._layout = PooledLayout(rules)
        self._prefix = recording.floor[0] + POOL_TOOLS
        self._calls: dict[str, ToolCall] = {}
        self._ordinals: dict[str, int] = {}  # by object
        self._gone: set[int] = set()
        self._recalls = self._whole_epochs = self._whole_replaced = self._covered = 0
        self._start = PooledRequest(replace(START, folder=recording.head.cwd or "", profile=recording.client))
        self._state = self._start

    def begin(self) -> None:
        self._talk.clear()
        self._whole_epochs += self._state.window.epochs
        self._whole_replaced += sum(map(bool, self._state.window.references.values()))
        self._state, self._covered = self._start, 0

    @property
    def epochs(self) -> int:
        return self._whole_epochs + self._state.window.epochs

    @property
    def replaced(self) -> int:
        return self._whole_replaced + sum(map(bool, self._state.window.references.values()))

    def enter(self, sized: SizedCall, *, cold: bool) -> None:
        known = len(self._talk.messages)
        self._talk.add(sized)
        self._step(self._talk.messages[known:], cold=cold)
        first, last = sized.call.blocks
        for block in self._talk.blocks[first:last]:
            if block.kind == "arguments":
                call = block.message.get().blocks[block.place]
                if isinstance(call, ToolCall):
                    self._calls[block.call_id] = call
            elif block.kind == "result":
                self._ordinals.update(dict.fromkeys(self._objects(block.call_id), block.ordinal))

    def _step(self, new: Iterable[Message], *, cold: bool) -> None:
        for message in new:
            self._state = self._fold.step(self._state, MessageEntry(message))
        self._state = self._fold.request(
            self._state, self._talk.messages, self._talk.count, cold=cold, prefix=self._prefix
        )

    def prompt(self) -> LaidPrompt:
        contents = PromptContents(conversation=self._talk.messages, objects=self._state.walk.texts)
        laid = self._layout.lay_out(self._state.window, LayoutFacts(contents, self._talk.count, covered=self._covered))
        self._covered = laid.covered
        return laid

    def shows(self, text: WantedText) -> bool:
        block = self._talk.blocks[text.ordinal]
        if block.kind != "result" or not self._state.window.references.get(block.call_id):
            return True
        shown = {one.id: one.version for one in self._state.window.shown}
        if block.call_id in shown:
            return True
        known = [self._state.walk.texts[shown[one]] for one in self._objects(block.call_id) if one in shown]
        return bool(known) and any(self._talk.words(text) in content for content in known)

    def _objects(self, call_id: str) -> list[str]:
        """Return the candidates for the text of a result: the object of the call, and of each file read by the call."""
        call = self._calls.get(call_id)
        found = [call_id]
        if call is not None:
            walk = self._state.walk
            accesses = walk.profile.effect_of(call).accesses
            found += (self._fold.pools.file_id(walk, absolute_path(one.path, walk.folder)) for one in accesses)
        return [one for one in found if one in self._state.walk.state.index]

    def bring_back(self, wanted: Sequence[WantedText]) -> None:
        ids = list(dict.fromkeys(self._source(one) for one in wanted))
        note = NoteEntry.of(PoolNote(tuple(PoolAct("activate", one) for one in ids)))
        calls, results = [], []
        for one in ids:
            self._recalls += 1
            name = f"pagein-recall-{self._recalls}"
            calls.append(ToolCall(name, ACTIVATE, f'{{"id":"{one}"}}'))
            results.append(ToolResult(name, f"Activated {one}", ACTIVATE))
        new = [Message("assistant", tuple(calls)), Message("tool", tuple(results))]
        self._talk.messages += new
        self._state = self._fold.step(self._state, note)
        self._step(new, cold=False)

    def _source(self, text: WantedText) -> str:
        """Return the object to activate: a file if its present content has the text, else the call."""
        block = self._talk.blocks[text.ordinal]
        for one in self._objects(block.call_id)[1:]:
            version = self._state.walk.state.index[one].version
            if version is not None and self._talk.words(text) in self._state.walk.texts.get(version, ""):
                return one
        return block.call_id

    def left(self) -> Iterator[int]:
        shown = {one.id for one in self._state.window.shown}
        for one, ordinal in self._ordinals.items():
            if one not in shown and ordinal not in self._gone and not self.shows(WantedText(ordinal)):
                self._gone.add(ordinal)
                yield ordinal
