"""A recorded session in the tiered layout: each file that was read whole stands in a tier, once and current.

The rest of the conversation stays in place. An edited file leaves its tier, as the layout demands.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256

from pagein.model.entries import MessageEntry
from pagein.model.laid_prompts import HistoryMessage, LaidPrompt, LayoutFacts, PromptContents
from pagein.model.messages import Message, ToolResult
from pagein.policy.layouts.conversation_blocks import message_blocks
from pagein.policy.layouts.pool_lines import reference_line
from pagein.policy.layouts.tiered import TieredLayout
from pagein.policy.pools.pool_fold import CONTEXT_TOOLS, START, PoolFold
from pagein.policy.tiers.frozen_order import CacheTerms
from pagein.policy.tiers.tier_fold import NO_TIERS, TierInput, apply_note, difference
from pagein.policy.tiers.tier_rules import PAGEIN
from pagein.policy.tiers.tier_values import HISTORY, RequestItem
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.laid_sessions import RecordedConversation, WantedText
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.prompt_sizes import SizedCall


class TieredSession:
    """The tiered layout. Nothing leaves, so nothing is recalled."""

    name = "tiered"
    overhead = 0.0

    def __init__(self, recording: BillableSession, prices: Prices) -> None:
        self._talk = RecordedConversation(recording)
        self._terms = CacheTerms(prices.read, prices.write_5m, prices.cache.model != "breakpoints")
        self._fold = PoolFold(recording.head.id)
        self._layout = TieredLayout(PAGEIN)
        self._start = replace(START, folder=recording.head.cwd or "", profile=recording.client)
        self.epochs = self.replaced = 0
        self._reset()

    def _reset(self) -> None:
        self._walk = self._start
        self._tiers = NO_TIERS
        self._said: list[HistoryMessage] = []
        self._texts: dict[str, str] = {}  # by path
        self._digests: dict[str, str] = {}
        self._covered = 0

    def begin(self) -> None:
        self._talk.clear()
        self._reset()

    def enter(self, sized: SizedCall, *, cold: bool) -> None:
        known = len(self._talk.messages)
        self._talk.add(sized)
        new = self._talk.messages[known:]
        for message in new:
            self._walk = self._fold.step(self._walk, MessageEntry(message))
        changed = self._update_files()
        self._said += [one for message in new if (one := self._as_said(message)) is not None]
        self._place(changed, cold=cold)

    def _update_files(self) -> frozenset[str]:
        """Read the current contents of fully read files. Return the paths of changed files."""
        changed = set[str]()
        state = self._walk.state
        for one in state.active:
            found = state.index[one.id]
            if found.type == "file":
                self._texts.setdefault(found.path, "")
        for path in list(self._texts):
            found = state.index[self._fold.file_id(self._walk, path)]
            text = self._walk.texts.get(found.version or "")
            if text is None:
                del self._texts[path]  # its content is unknown now
            elif text != self._texts[path]:
                changed.add(path)
                self._texts[path] = text
        return frozenset(changed)

    def _as_said(self, message: Message) -> HistoryMessage | None:
        def reference(result: ToolResult) -> str | None:
            one = self._walk.state.index.get(result.call_id)
            if one is None or one.place is not None or one.tool in CONTEXT_TOOLS:
                return None
            self.replaced += 1
            return reference_line(one.id, one.tool, failed=one.status == "fail")

        blocks = list(message_blocks(message, self._talk.count, reference))
        if not blocks:
            return None
        # distinct texts, so that two equal messages have their own sizes
        text = "\n".join((f"[{len(self._said)}]", *(block.text for block in blocks)))
        self._talk.set_size(text, sum(block.tokens for block in blocks))
        return HistoryMessage("assistant" if message.role == "assistant" else "user", text)

    def _place(self, changed: frozenset[str], *, cold: bool) -> None:
        items = [RequestItem(path, self._digest(text), self._talk.count(text)) for path, text in self._texts.items()]
        items += [
            RequestItem(f"{HISTORY}{number}", self._digest(one.text), self._talk.count(one.text))
            for number, one in enumerate(self._said[:-1])
        ]
        given = TierInput(tuple(items), modified=changed, cold=cold)
        note = difference(self._tiers, given, PAGEIN, self._terms)
        self._covered = self._tiers.covered
        self._tiers, step = apply_note(self._tiers, note)
        self.epochs += bool(step.state.rewritten and self._texts)

    def _digest(self, text: str) -> str:
        known = self._digests.get(text)
        if known is None:
            known = self._digests[text] = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return known

    def prompt(self) -> LaidPrompt:
        contents = PromptContents(self._said[-1].text, files=dict(self._texts), history=tuple(self._said[:-1]))
        facts = LayoutFacts(contents, self._talk.count, covered=self._covered)
        laid = self._layout.lay_out(self._tiers.state, facts)
        self._tiers = replace(self._tiers, covered=laid.covered)
        return laid

    def shows(self, text: WantedText) -> bool:
        del text
        return True

    def bring_back(self, wanted: Sequence[WantedText]) -> None:
        del wanted

    def left(self) -> Iterable[int]:
        return ()
