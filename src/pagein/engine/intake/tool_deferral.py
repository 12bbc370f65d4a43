"""Choose the client's tools that the model must search for, at a conversation's first request (floor paging).

Rules of this file
------------------
1. Tools come before everything that a provider caches. So the choice is made once, before a conversation's first request,
   and journaled: every request of the branch defers the same tools. A tool that is used meanwhile was found by a search,
   and is offered like the others from the next session on.
2. Only tools of agents are deferred, for models and in formats with a tool search of the provider's own, and where the
   client defers none itself.
3. Never deferred: the tools of a conversation that began elsewhere, whose prompt a cache may hold, and a known agent's own
   tools to read, search, edit and run, by which it works and recalls.
4. The note is journaled also without a tool to defer: it tells later sessions what this one was offered.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.engine.intake.message_chain import Transcript
from pagein.engine.intake.recall_tools import is_agents
from pagein.model.journal_notes import DeferredToolsNote
from pagein.model.json_text import decode_json, encode_json
from pagein.policy.clients.profile import Profile
from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.economics.tool_deferral import SessionTools, ToolSize, deferred_tools
from pagein.ports import TokenCounter
from pagein.providers.prices.model_abilities import abilities
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.json_values import Json
from pagein.providers.wire.request_body import Envelope
from pagein.providers.wire.wire_format import DeferralForm

_OWN: Final = frozenset({"read", "edit", "write", "exec", "list", "search"})


@dataclass(frozen=True, slots=True)
class DeferralFacts:
    """The facts behind a choice.

    is_begun: True if a request of the conversation was sent already.
    model: name of the model.
    profile: the client's profile; None if unknown.
    sessions: returns the tools of earlier sessions.
    economics: returns the prices of the request; None for a model without a price.
    counter: counts tokens.
    asked_at: time of the request, seconds since 1970; None if unknown.
    keeps_front: whether a front that the cache may hold is kept, whatever another choice would spare.
    """

    is_begun: bool
    model: str
    profile: Profile | None
    sessions: Callable[[], Sequence[SessionTools]]
    economics: Callable[[], Economics | None]
    counter: TokenCounter
    asked_at: float | None
    keeps_front: bool = False


def note_of(
    envelope: Envelope, script: Transcript, settled: DeferredToolsNote | None, facts: DeferralFacts
) -> DeferredToolsNote | None:
    """Return the note to journal with a request; None without news.

    settled: the choice of the branch so far; None if there was none.
    """
    if settled is None and facts.is_begun:
        return None
    form = format_named(envelope.api).tools
    if "tools" not in envelope.fields or form.deferral is None or not abilities(facts.model).searches_tools:
        return None
    rows = form.definitions(decode_json(envelope.fields["tools"]))
    offered = tuple(str(one["name"]) for one in rows if one.get("name"))
    if settled is not None:
        more = tuple(name for name in offered if name not in settled.offered)
        return DeferredToolsNote((*settled.offered, *more), settled.deferred) if more else None
    if not is_agents(envelope) or not form.deferral.is_free(rows):
        return None
    is_new = all(unit.message.role != "assistant" for unit in script.units)
    sizes = _sizes(rows, form.deferral, facts) if is_new else []
    economics = facts.economics() if sizes else None
    if economics is None:
        return DeferredToolsNote(offered)
    chosen = deferred_tools(
        sizes, facts.sessions(), economics, form.deferral.tokens, facts.asked_at, keeps_front=facts.keeps_front
    )
    return DeferredToolsNote(offered, chosen)


def _sizes(rows: Sequence[Json], form: DeferralForm, facts: DeferralFacts) -> list[ToolSize]:
    """Return the tools that may be deferred."""
    own = {name for name, op in facts.profile.ops.items() if op in _OWN} if facts.profile is not None else set()
    names = [(str(row.get("name")), row) for row in rows if form.may_defer(row)]
    return [
        ToolSize(name, facts.counter.count(encode_json(row).decode("utf-8", "replace"), "system"))
        for name, row in names
        if name not in own
    ]
