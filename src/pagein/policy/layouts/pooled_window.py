"""The window of the pooled layout: which contents stand where, from one request to the next.

Contents stand behind the messages after which they became active. A content that is no longer active stays there until
taking it out pays, because everything behind it is then written again. What is shown does not change in between.

Rules of this file
------------------
1. Of the contents behind the first that leaves, those that stay move to the end, what has been unchanged for longest first.
2. The metadata block and the news keep their bytes until the provider's cache has expired.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from pagein.model.shared_map import SharedMap
from pagein.policy.layouts.pool_lines import metadata_text, news_text
from pagein.policy.pools.pool_values import NO_POOLS, ActiveContent, PooledObject, PoolState
from pagein.policy.tiers.frozen_order import CacheTerms


@dataclass(frozen=True, slots=True)
class PooledRules:
    """The choices of the pooled layout.

    content: `kept`: contents stay where they are until taking them out pays. `current`: behind the conversation, in every
        request, stand exactly the active contents.
    whole_below: results with fewer characters stand whole in the conversation.
    listed: whether the metadata pool lists `all` objects, or those `unnamed` by a reference in the conversation.
    """

    content: Literal["kept", "current"] = "kept"
    whole_below: int = 400
    listed: Literal["all", "unnamed"] = "unnamed"


PAGEIN: Final = PooledRules()
SPEC: Final = PooledRules("current", 0, "all")
"""The design of the memory system to the letter."""
PRESETS: Final = {"pagein": PAGEIN, "spec": SPEC}


@dataclass(frozen=True, slots=True)
class ShownContent:
    """A content in the window.

    version: the version that is shown.
    present: the version to which the edits in the calls behind it lead.
    behind: number of messages in front of it.
    front: tokens of conversation, news and contents in front of it.
    owed: what its tokens have cost since it was last active, in uncached input tokens.
    """

    id: str
    version: str
    present: str
    behind: int
    front: float
    tokens: float
    owed: float = 0.0


@dataclass(frozen=True, slots=True)
class PooledWindow:
    """The window at a request.

    pools: the pools at this request.
    metadata: the metadata block.
    news: what was told, by the number of messages in front of it (as a text).
    shown: the contents in order.
    messages: messages of the conversation.
    talk: tokens of the conversation and the news.
    rebuilt: number of messages in front of the first change of this request; None if it only appends.
    epochs: how often earlier bytes have changed.
    """

    pools: PoolState = NO_POOLS
    metadata: str = ""
    news: SharedMap[str] = field(default_factory=SharedMap)
    shown: tuple[ShownContent, ...] = ()
    messages: int = 0
    talk: float = 0.0
    rebuilt: int | None = None
    epochs: int = 0


NO_WINDOW: Final = PooledWindow()


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """What the next request brings.

    messages: messages of the conversation.
    talk: tokens of the new messages.
    size: returns the tokens of a content by id and version.
    count: returns the tokens of a text.
    edited: objects that calls among the new messages changed, in a way that these calls show.
    cold: whether the provider's cache has expired.
    """

    messages: int
    talk: float
    size: Callable[[str, str], float]
    count: Callable[[str], float]
    edited: frozenset[str] = frozenset()
    cold: bool = False


def next_window(
    before: PooledWindow, pools: PoolState, facts: WindowFacts, rules: PooledRules, terms: CacheTerms
) -> PooledWindow:
    """Return the window of the next request. Within an epoch it only appends to the last one."""
    if facts.cold or not before.messages:
        return _anew(before, pools, facts, rules)
    active = {one.id: one for one in pools.active}
    standing = tuple(_aged(one, active.get(one.id), facts.edited, terms) for one in before.shown)
    first = 0 if rules.content == "current" else _first_to_leave(standing, active, before.talk, terms)
    kept, moved = standing[:first], standing[first:]
    there = {(one.id, one.present) for one in kept}
    entering = [one for one in pools.active if (one.id, one.version) not in there]
    leaving = [one.id for one in moved if one.id not in active]
    changed = [one.id for one in standing if one.id in facts.edited and one.id in active and one in kept]
    news = news_text(_listed(before.pools, pools, rules, facts.messages), leaving, changed)
    talk = before.talk + facts.talk + facts.count(news) if news else before.talk + facts.talk
    rebuilt = moved[0].behind if moved else None
    shown = kept + _placed(entering, facts, talk + sum(one.tokens for one in kept))
    return replace(
        before,
        pools=pools,
        news=before.news.put(str(facts.messages), news) if news else before.news,
        shown=shown,
        messages=facts.messages,
        talk=talk,
        rebuilt=rebuilt,
        epochs=before.epochs + (rebuilt is not None and rules.content == "kept"),
    )


def _anew(before: PooledWindow, pools: PoolState, facts: WindowFacts, rules: PooledRules) -> PooledWindow:
    """Begin with an expired cache: everything is written again, so everything may move."""
    told = sum(facts.count(text) for text in before.news.values())
    talk = before.talk + facts.talk - told
    listed = (one for one in pools.pool() if rules.listed == "all" or one.type != "toolcall")
    return PooledWindow(
        pools,
        metadata_text(listed),
        SharedMap(),
        _placed(pools.active, facts, talk),
        facts.messages,
        talk,
        rebuilt=0 if before.messages else None,
        epochs=before.epochs + bool(before.messages),
    )


def _placed(entering: Iterable[ActiveContent], facts: WindowFacts, front: float) -> tuple[ShownContent, ...]:
    """Place contents behind the last message, what has been unchanged for longest first."""
    placed: list[ShownContent] = []
    for one in sorted(entering, key=lambda one: one.since):
        tokens = facts.size(one.id, one.version)
        placed.append(ShownContent(one.id, one.version, one.version, facts.messages, front, tokens))
        front += tokens
    return tuple(placed)


def _aged(
    one: ShownContent, active: ActiveContent | None, edited: frozenset[str], terms: CacheTerms
) -> ShownContent:
    if active is not None and active.version != one.present and one.id in edited:
        one = replace(one, present=active.version)
    if active is not None and active.version == one.present:
        return replace(one, owed=0.0) if one.owed else one
    return replace(one, owed=one.owed + terms.read * one.tokens)


def _first_to_leave(
    standing: tuple[ShownContent, ...], active: dict[str, ActiveContent], talk: float, terms: CacheTerms
) -> int:
    """Return the place of the first content of a rebuild that pays, or the number of contents if none does.

    A rebuild pays when the contents that leave have cost as much since they left the active set as writing all behind
    the first of them again.
    """
    behind = talk + sum(one.tokens for one in standing)
    best, most, owed, dead = len(standing), 0.0, 0.0, 0.0
    for place in range(len(standing) - 1, -1, -1):
        one = standing[place]
        now = active.get(one.id)
        if now is not None and now.version == one.present:
            continue
        owed, dead = owed + one.owed, dead + one.tokens
        gain = owed - (terms.write - terms.read) * (behind - one.front - dead)
        if gain > most:
            best, most = place, gain
    return best


def _listed(before: PoolState, now: PoolState, rules: PooledRules, messages: int) -> list[PooledObject]:
    """Return the objects to tell of: new ones, and listed ones whose metadata changed."""
    updated = {
        change.id
        for behind in range(before.messages + 1, max(now.messages, messages) + 1)
        for change in now.news_at(behind)
        if change.kind == "updated"
    }
    new = [one for one in now.pool(before.size) if rules.listed == "all" or one.type != "toolcall"]
    known = {one.id for one in new}
    return [*new, *(now.index[one] for one in sorted(updated) if one not in known and now.index[one].type != "toolcall")]
