"""The tiered layout: stable items first, in tiers, the conversation behind them, the user's words last.

Rules of this file
------------------
1. An empty section has no block. Each section of context is a user message with a constant answer.
2. A block's text depends on its items alone, not on N, time or place.
3. With breakpoints by the provider's rules, one is always at the end of what the next request repeats.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

from pagein.model.laid_prompts import HistoryMessage, LaidBlock, LaidPrompt, LayoutFacts, PromptContents
from pagein.policy.layouts.conversation_blocks import LOOKBACK, MOST_MARKS
from pagein.policy.layouts.item_texts import (
    ACKNOWLEDGEMENT,
    FILES,
    TREE,
    URLS,
    file_text,
    item_text,
    section_text,
    tier_text,
)
from pagein.policy.tiers.tier_rules import PAGEIN, TierRules
from pagein.policy.tiers.tier_values import CACHED, HISTORY, SYMBOL, URL, Tier, TierState, symbol_key


@dataclass(frozen=True, slots=True)
class TieredLayout:
    """The layout of stability tiers, by the choices of a preset."""

    rules: TierRules = PAGEIN
    name: str = "tiered"

    def lay_out(self, state: TierState, facts: LayoutFacts) -> LaidPrompt:
        """Return the prompt of a request, from the tiers after its step."""
        prompt = _TieredPrompt(state, facts.contents, self.rules)
        drafts = list(prompt.blocks())
        sizes = [facts.count(text) for _, _, text, _ in drafts]
        sections = [section for _, section, _, _ in drafts]
        ends = [place for place, (_, _, _, is_end) in enumerate(drafts) if is_end]
        final, covered = _final(sections, facts.contents)
        marks = (
            ends
            if self.rules.marks == "tiers"
            else _by_provider(sections, ends, final, 0 if state.rewritten else facts.covered)
        )
        fronts = list(accumulate(sizes))
        marked = {place for place in marks if fronts[place] >= facts.min_prefix}
        blocks = (
            LaidBlock(role, section, text, size, place in marked)
            for place, ((role, section, text, _), size) in enumerate(zip(drafts, sizes, strict=True))
        )
        return LaidPrompt(tuple(blocks), covered)


_Draft: TypeAlias = tuple[Literal["system", "user", "assistant"], str, str, bool]
"""Role, section, text, and whether a breakpoint of the tiers may stand there."""


@dataclass(frozen=True, slots=True)
class _TieredPrompt:
    state: TierState
    contents: PromptContents
    rules: TierRules

    def blocks(self) -> Iterator[_Draft]:
        """Yield the blocks in order, without empty ones."""
        order = [self._tiers(), self._tail(), self._conversation()]
        if self.rules.tail == "history first":
            order = [self._tiers(), self._conversation(), self._tail()]
        prompt: _Draft = ("user", "prompt", self.contents.prompt, False)
        yield from (draft for drafts in (*order, [prompt]) for draft in drafts if draft[2].strip())

    def _tiers(self) -> Iterator[_Draft]:
        form = self._items_apart if self.rules.blocks == "item" else self._tier_whole
        for tier in CACHED:
            yield from form(tier)

    def _tier_whole(self, tier: Tier) -> Iterator[_Draft]:
        keys = self._keys(tier)
        items = [(key, self._text(key)) for key in keys if not key.startswith(HISTORY)]
        said = [self._said(key) for key in sorted(keys, key=_number) if key.startswith(HISTORY)]
        in_text = said if self.rules.history_form == "markdown" else []
        text = tier_text(tier, items, in_text)
        apart = [] if in_text else said
        if tier == "L0":
            text = "\n\n".join(part for part in (self.contents.system, self.contents.legend, text) if part)
            yield "system", tier, text, not apart
        elif text:
            yield "user", tier, text, not apart
            yield "assistant", tier, ACKNOWLEDGEMENT, False
        yield from _messages(tier, apart)

    def _items_apart(self, tier: Tier) -> Iterator[_Draft]:
        known = self._keys(tier)
        keys = [key for key in known if not key.startswith(HISTORY)]
        said = [self._said(key) for key in sorted(known, key=_number) if key.startswith(HISTORY)]
        if tier == "L0":
            head = "\n\n".join(part for part in (self.contents.system, self.contents.legend) if part)
            yield "system", tier, head, self.rules.promotion == "rewritten" or not known
        role: Literal["system", "user"] = "system" if tier == "L0" else "user"
        for place, key in enumerate(keys, 1):
            is_last = place == len(keys) and not said
            yield role, tier, item_text(key, self._text(key)), self._is_entry(key, last=is_last)
        if keys and tier != "L0":
            yield "assistant", tier, ACKNOWLEDGEMENT, False
        yield from _messages(tier, said)

    def _is_entry(self, key: str, *, last: bool) -> bool:
        if self.rules.promotion == "ripple":
            return last
        return any(self.state.order[place - 1] == key for place in self.state.entries)

    def _tail(self) -> Iterator[_Draft]:
        contents, chosen = self.contents, self.contents.chosen
        tracked = self.rules.promotion == "rewritten"
        urls = [item_text(URL + url, text) for url, text in contents.urls.items() if not tracked]
        files = [self._active_text(key) for key in self._active_keys(chosen)]
        sections = (
            ("tree", section_text(TREE, [contents.tree])),
            ("urls", section_text(URLS, urls)),
            ("active", section_text(FILES, files)),
        )
        for section, text in sections:
            yield "user", section, text, False
            if text and self.rules.tail == "files first":
                yield "assistant", section, ACKNOWLEDGEMENT, False

    def _active_keys(self, chosen: frozenset[str]) -> list[str]:
        """The items in the active part: selected files, and whatever else is active, in the order of the active list."""
        state, contents = self.state, self.contents
        files = [path for path in contents.files if state.tier(path) == "active"]
        known = [path for path in files if path in chosen or path in state.last_active]
        symbols = [symbol_key(path) for path in contents.symbols if path not in chosen]
        keys = [*(key for key in symbols if state.tier(key) == "active"), *known]
        if self.rules.promotion == "rewritten":
            keys += [URL + url for url in contents.urls if state.tier(URL + url) == "active"]
            places = {key: place for place, key in enumerate(state.last_active)}
            keys.sort(key=lambda key: places.get(key, len(places)))
        return keys

    def _active_text(self, key: str) -> str:
        return item_text(key, self._text(key)) if key.startswith((SYMBOL, URL)) else file_text(key, self._text(key))

    def _conversation(self) -> Iterator[_Draft]:
        for number, one in enumerate(self.contents.history):
            if self.state.tier(f"{HISTORY}{number}") == "active":
                yield one.role, "history", one.text, False

    def _keys(self, tier: Tier) -> list[str]:
        """The items of a tier that are given, in the order of the prompt."""
        state = self.state
        if self.rules.promotion == "rewritten":
            return [key for key in state.order if state.items[key].tier == tier and self._has(key)]
        keys = state.by_tier()[tier]
        if self.rules.inside == "entry":
            places = {key: place for place, key in enumerate(state.items)}
            keys = sorted(keys, key=lambda key: (state.items[key].since, places[key]))
        if tier == "L3":
            keys += [symbol_key(path) for path in self.contents.symbols if symbol_key(path) not in state.items]
        return [key for key in keys if self._has(key)]

    def _has(self, key: str) -> bool:
        contents = self.contents
        if key.startswith(HISTORY):
            return _number(key) < len(contents.history)
        if key.startswith(SYMBOL):
            path = key.removeprefix(SYMBOL)
            return path in contents.symbols and path not in contents.chosen
        return key in contents.files or key.removeprefix(URL) in contents.urls

    def _text(self, key: str) -> str:
        contents = self.contents
        if key.startswith(SYMBOL):
            return contents.symbols[key.removeprefix(SYMBOL)]
        return contents.urls[key.removeprefix(URL)] if key.startswith(URL) else contents.files[key]

    def _said(self, key: str) -> HistoryMessage:
        return self.contents.history[_number(key)]


def _messages(tier: Tier, said: Sequence[HistoryMessage]) -> Iterator[_Draft]:
    for place, one in enumerate(said, 1):
        yield one.role, tier, one.text, place == len(said)


def _number(key: str) -> int:
    return int(key.removeprefix(HISTORY)) if key.startswith(HISTORY) else -1


def _final(sections: Sequence[str], contents: PromptContents) -> tuple[int, int]:
    """The last block that the next request repeats, and the messages of the conversation up to it."""
    volatile = {"tree", "urls", "active"}
    first = next((place for place, section in enumerate(sections) if section in volatile), len(sections))
    if first == len(sections):
        return len(sections) - 1, len(contents.history) + 1
    return first - 1, sections[:first].count("history")


def _by_provider(sections: Sequence[str], ends: Iterable[int], final: int, covered: int) -> Iterable[int]:
    """The end, the previous end where the look-back would miss it, then the last places among the tiers.

    covered: messages up to the previous end; 0 if it cannot be read any more.
    """
    if final < 0:
        return []
    marks = [final]
    spoken = [place for place, section in enumerate(sections) if section in ("history", "prompt")]
    if 0 < covered <= len(spoken):
        previous = spoken[covered - 1]
        if final - previous > LOOKBACK:
            marks.append(previous)
    before = [place for place in ends if place < final and place not in marks]
    return [*marks, *before[len(marks) - MOST_MARKS :]]
