"""The window of the pooled layout: the contents and their places, from request to request.

Contents stand after the messages after which they became active. A content that is no longer active stays there until
taking it out pays, because everything behind it is then written again. What is shown does not change in between.

Rules of this file
------------------
1. Of the contents behind the first that leaves, those that stay move to the end, what has been unchanged for longest first.
2. The metadata block, the news and the references keep their bytes until the provider's cache has expired.
3. A rebuild costs no more than what the window has saved so far and a share of the bill, so that no session loses more.
4. What a call showed is shown to the model at least once, however many calls its reply had.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

from pagein.model.messages import Message, ToolResult
from pagein.model.shared_collections import SharedMap
from pagein.policy.clients.client_prompts import words_beside
from pagein.policy.layouts.conversation_blocks import Count, message_blocks
from pagein.policy.layouts.pool_lines import content_text, metadata_line, metadata_text, news_text, reference_line
from pagein.policy.layouts.window_rebuilds import ShownContent, first_to_leave
from pagein.policy.pools.pool_fold import CONTEXT_TOOLS
from pagein.policy.pools.pool_values import NO_POOLS, ActiveContent, PooledObject, PoolState
from pagein.policy.tiers.frozen_order import CacheTerms


@dataclass(frozen=True, slots=True)
class PooledRules:
    """The choices of the pooled layout.

    content: `kept`: contents stay where they are until taking them out pays. `current`: after the conversation, in every
        request, stand exactly the active contents.
    whole_below: results with fewer characters stand whole in the conversation.
    listed: whether the metadata pool lists `all` objects, or only those with a `known` content that no result of a call is.
    """

    content: Literal["kept", "current"] = "kept"
    whole_below: int = 800
    listed: Literal["all", "known"] = "known"


PAGEIN: Final = PooledRules()
SPEC: Final = PooledRules("current", 0, "all")
"""The design of the memory system to the letter."""
_SHARE: Final = 0.02
"""Share of the bill that rewrites may cost beyond what was saved."""
PRESETS: Final = {"pagein": PAGEIN, "spec": SPEC}


@dataclass(frozen=True, slots=True)
class PooledWindow:
    """The window at a request.

    pools: the pools at this request.
    metadata: the metadata block.
    news: what was told, by the number of messages in front of it (as a text).
    lines: the metadata line that was told last of an object, by its id.
    references: the text that stands for a result, by the id of its call; "" for a result that stands whole.
    repeated: results that stand whole because an earlier call had the same id, by `place_of`.
    shown: the contents in order.
    messages: messages of the conversation.
    talk: tokens of the conversation and the news.
    rebuilt: number of messages in front of the first change of this request; None if it only appends.
    frontier: number of messages in front of the content from which the next rebuild would most likely begin. The prompt
        has a breakpoint there, so that the rebuild reads the cache up to it.
    readable: tokens in front of this breakpoint; 0 without one.
    epochs: how often earlier bytes have changed.
    absent: tokens of contents that were taken out.
    bill: what the prompts so far have cost, in uncached input tokens.
    saved: what taking contents out has spared so far, less what the rewrites have cost.
    """

    pools: PoolState = NO_POOLS
    metadata: str = ""
    news: SharedMap[str] = field(default_factory=SharedMap)
    lines: SharedMap[str] = field(default_factory=SharedMap)
    references: SharedMap[str] = field(default_factory=SharedMap)
    repeated: SharedMap[bool] = field(default_factory=SharedMap)
    shown: tuple[ShownContent, ...] = ()
    messages: int = 0
    talk: float = 0.0
    rebuilt: int | None = None
    frontier: int | None = None
    readable: float = 0.0
    epochs: int = 0
    absent: float = 0.0
    bill: float = 0.0
    saved: float = 0.0

    def reference(self, number: int, result: ToolResult) -> str | None:
        """Return the reference in place of a result; None for a result shown in full.

        number: of its message, from 1.
        """
        if place_of(number, result) in self.repeated:
            return None
        return self.references.get(result.call_id) or None


def place_of(number: int, result: ToolResult) -> str:
    """Return the name of a result in the conversation. number: of its message, from 1."""
    return f"{number} {result.call_id}"


NO_WINDOW: Final = PooledWindow()


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """The facts of the next request.

    new: its messages behind those of the last request.
    texts: the texts of contents, by version.
    count: returns the tokens of a text.
    edited: objects that calls among the new messages changed, in a way that these calls show.
    cold: whether the provider's cache has expired.
    prefix: tokens of system prompt and tool definitions.
    floor: messages at the beginning that must stay as they were sent.
    whole: whether the new messages stand as they came, without anything behind them.
    told: versions that an answer shows whole in the conversation, by the id of their object.
    marked: whether the prompt gets a breakpoint at the frontier.
    """

    new: Sequence[Message]
    texts: Mapping[str, str]
    count: Count
    edited: frozenset[str] = frozenset()
    cold: bool = False
    prefix: float = 0.0
    floor: int = 0
    whole: bool = False
    told: Mapping[str, str] = field(default_factory=dict)
    marked: bool = True

    def size(self, object_id: str, version: str) -> float:
        """Return the tokens of a content."""
        return self.count(content_text(object_id, self.texts[version]))


def next_window(
    before: PooledWindow, pools: PoolState, facts: WindowFacts, rules: PooledRules, terms: CacheTerms
) -> PooledWindow:
    """Return the window of the next request. Within an epoch it only appends to the last one."""
    new, messages = facts.new, before.messages + len(facts.new)
    least = messages if facts.whole else facts.floor
    going = _with_references(replace(before, pools=pools, messages=messages, rebuilt=None), new, rules, least)
    references = going.references
    talk = before.talk + sum(
        block.tokens
        for number, one in enumerate(new, before.messages + 1)
        for block in message_blocks(one, facts.count, partial(going.reference, number))
    )
    going = replace(going, talk=talk)
    if facts.whole:
        return replace(going, pools=before.pools)  # later news tells what changed
    wanted = [
        one
        for one in _entering(before, pools, messages, references, rules)
        if one.version in facts.texts and facts.told.get(one.id) != one.version
    ]
    if facts.cold or not before.messages:
        return _anew(before, going, wanted, facts, rules)
    active = {one.id: one.version for one in pools.active}
    newest = {one.id: place for place, one in enumerate(before.shown)}  # an earlier content of an object counts no more
    standing = tuple(
        _aged(one, active.get(one.id) if newest[one.id] == place else None, facts.edited, terms)
        for place, one in enumerate(before.shown)
    )
    funds = before.saved + _SHARE * before.bill
    first, spent, likely = 0, 0.0, len(standing)
    if rules.content == "kept":
        first, spent, likely = first_to_leave(standing, talk, before.readable, funds, terms, facts.floor)
    kept, moved = standing[:first], standing[first:]
    there = {one.id: one.present for one in kept}
    entering = [one for one in wanted if there.get(one.id) != one.version]
    entering_ids = {one.id for one in entering}
    leaving = [one.id for one in moved if one.id not in entering_ids]
    changed = (one.id for one in kept if one.id not in entering_ids and _has_changed(one, before.pools, pools))
    lines = _new_lines(before, pools, rules, messages, leaving)
    news = news_text(lines.values(), dict.fromkeys(leaving), dict.fromkeys(changed))
    if news:
        going = replace(going, news=going.news.put(str(messages), news), talk=talk + facts.count(news))
    for one_id, line in lines.items():
        going = replace(going, lines=going.lines.put(one_id, line))
    going = replace(
        going,
        shown=kept + _placed(entering, facts, messages, going.talk + sum(one.tokens for one in kept)),
        rebuilt=moved[0].behind if moved else None,
        frontier=standing[likely].behind if likely < first else None,
        readable=standing[likely].front if likely < first and facts.marked else 0.0,
        epochs=before.epochs + (bool(moved) and rules.content == "kept"),
    )
    stays = {(one.id, one.version) for one in going.shown}
    absent = before.absent + sum(one.tokens for one in moved if (one.id, one.version) not in stays)
    size, cached = _size(going), _size(before)
    return replace(
        going,
        absent=absent,
        bill=before.bill
        + terms.read * (facts.prefix + min(size, cached))
        + terms.write * max(0.0, size - cached)
        + spent,
        saved=before.saved + terms.read * absent - spent,
    )


def _size(window: PooledWindow) -> float:
    return window.talk + sum(one.tokens for one in window.shown)


def _with_references(window: PooledWindow, new: Sequence[Message], rules: PooledRules, floor: int) -> PooledWindow:
    """Add the references for the results among new messages, the last ones of the window.

    floor: messages at the beginning whose results stand whole.
    """
    references, repeated = window.references, window.repeated
    for number, message in enumerate(new, window.messages - len(new) + 1):
        for result in message.blocks:
            if not isinstance(result, ToolResult):
                continue
            if result.call_id in references:  # providers that count their calls anew
                repeated = repeated.put(place_of(number, result), True)  # noqa: FBT003 -- a set
            else:
                told = "" if number <= floor else _reference(result, window.pools, rules)
                references = references.put(result.call_id, told)
    return replace(window, references=references, repeated=repeated)


def _reference(result: ToolResult, pools: PoolState, rules: PooledRules) -> str:
    one = pools.index.get(result.call_id)
    if one is None or result.images or result.withheld is not None:
        return ""
    if one.tool in CONTEXT_TOOLS or _stands_whole(one, rules):
        return ""
    files = () if one.place is not None else one.shows
    if rules.content == "kept" and any(version not in ("", pools.index[name].version) for name, version in files):
        return ""  # a later call changed the file before any request, so no block will show what this one read
    line = reference_line(one.id, one.tool, failed=one.status == "fail", objects=(name for name, _ in files))
    return line + "".join(f"\n{told}" for told in words_beside(result.text)) if files else line


def _stands_whole(one: PooledObject, rules: PooledRules) -> bool:
    """Return whether a short result stays in the conversation."""
    return one.type == "toolcall" and one.place is not None and one.chars < rules.whole_below


def _entering(
    before: PooledWindow, pools: PoolState, messages: int, references: Mapping[str, str], rules: PooledRules
) -> list[ActiveContent]:
    """Return the contents for the window: active ones, and those shown by calls since the last request."""
    wanted = list(pools.active)
    if rules.content == "kept":
        known = {one.id for one in wanted}
        for behind in range(before.messages + 1, messages + 1):
            for change in pools.news_at(behind):
                version = pools.index[change.id].version
                if change.kind == "activated" and change.id not in known and version is not None:
                    known.add(change.id)
                    wanted.append(ActiveContent(change.id, version, 0, pools.turn, "window"))
    return [one for one in wanted if references.get(one.id) != ""]


def _anew(
    before: PooledWindow, going: PooledWindow, wanted: Iterable[ActiveContent], facts: WindowFacts, rules: PooledRules
) -> PooledWindow:
    """Begin with an expired cache: everything is written again, so everything may move."""
    talk = going.talk - sum(facts.count(text) for text in before.news.values())
    lines = SharedMap[str]()
    for one in going.pools.pool():
        if _is_listed(one, rules):
            lines = lines.put(one.id, metadata_line(one))
    return replace(
        going,
        metadata=metadata_text(lines[one.id] for one in going.pools.pool() if one.id in lines),
        news=SharedMap[str](),
        lines=lines,
        talk=talk,
        shown=_placed(wanted, facts, going.messages, talk),
        rebuilt=0 if before.messages else None,
        epochs=before.epochs + bool(before.messages),
    )


def _placed(
    entering: Iterable[ActiveContent], facts: WindowFacts, behind: int, front: float
) -> tuple[ShownContent, ...]:
    """Place contents after the last message, the longest unchanged first."""
    placed: list[ShownContent] = []
    for one in sorted(entering, key=lambda one: one.since):
        tokens = facts.size(one.id, one.version)
        placed.append(ShownContent(one.id, one.version, one.version, behind, front, tokens))
        front += tokens
    return tuple(placed)


def _aged(one: ShownContent, version: str | None, edited: frozenset[str], terms: CacheTerms) -> ShownContent:
    """Return a content one request later. version: the active version of the object; None for an inactive object."""
    if version is not None and version != one.present and one.id in edited:
        one = replace(one, present=version)
    if version == one.present:
        return replace(one, owed=0.0, is_live=True) if one.owed else one
    return replace(one, owed=one.owed + terms.read * one.tokens, is_live=False)


def _has_changed(one: ShownContent, before: PoolState, now: PoolState) -> bool:
    """Return whether an object has got another content, or one that is not known, since the last request.

    Of a deleted file, its metadata tells.
    """
    was, known = before.index.get(one.id), now.index[one.id]
    return was is not None and was.version != known.version and not known.deleted


def _new_lines(
    before: PooledWindow, now: PoolState, rules: PooledRules, messages: int, leaving: Iterable[str]
) -> Mapping[str, str]:
    """Return the metadata lines for the news, by id: of new objects, and of objects whose line changed.

    leaving: objects whose content leaves. While it stood, it told what is known of them.
    """
    named = [one.id for one in now.pool(before.pools.size)]
    for behind in range(before.messages + 1, messages + 1):
        named += [change.id for change in now.news_at(behind) if change.kind == "updated"]
    named += (one for one in leaving if one in before.lines)
    objects = (now.index[one] for one in dict.fromkeys(named))
    lines = {one.id: metadata_line(one) for one in objects if _is_listed(one, rules) or one.id in before.lines}
    return {one: line for one, line in lines.items() if before.lines.get(one) != line}


def _is_listed(one: PooledObject, rules: PooledRules) -> bool:
    return rules.listed == "all" or (one.type != "toolcall" and (one.content != "unread" or one.deleted))
