"""The cached prefixes of a session's branches: the terms of each request, and what its answer adds to the shared savings.

The rules are those of `engine.cache.cache_ttl`; what a session may borrow of the savings of others is decided in
`policy.economics.savings_reserve`.
"""

from dataclasses import replace

from pagein.engine.cache.cache_evidence import CacheEvidence
from pagein.engine.cache.cache_inputs import prices_for
from pagein.engine.cache.cache_ttl import (
    KeepAlivePlan,
    TtlQuery,
    TtlTerms,
    due,
    lifetimes_of,
    prefix_after_keepalive,
    terms,
)
from pagein.engine.cache.cached_prefix import CachedPrefix, step
from pagein.engine.cache.entry_ages import branch_entries
from pagein.engine.log.journal import Fold, Journal
from pagein.engine.log.state import State
from pagein.model.cache_notes import CacheVerdictNote
from pagein.model.entries import EntryId
from pagein.model.journal_notes import CachedPrefixNote, PrefixDigests
from pagein.model.messages import Usage
from pagein.policy.economics import cache_keepalive
from pagein.policy.economics.cache_keepalive import Lifetimes
from pagein.policy.economics.decision_prices import economics_of
from pagein.policy.economics.rewrite_cost import Account, Economics, Moment, at_risk
from pagein.policy.economics.savings_reserve import NOTHING_DRAWN, Exposure, SessionRequest
from pagein.providers.prices.token_prices import Prices, cost


def _up_to_date(
    held: CachedPrefix | None, lifetimes: Lifetimes, lasted: float, sent_at: float | None
) -> CachedPrefix | None:
    """Return the cached prefix, with a later request whose reply was not reported (TTL `lasted`)."""
    if held is None or sent_at is None or held.lease.sent is None or sent_at <= held.lease.sent:
        return held
    return replace(held, lease=cache_keepalive.lease_after_unreported(held.lease, lifetimes, sent_at, lasted))


def _in_hand(account: Account, price: Prices) -> float:
    return account.saved + at_risk(account, economics_of(price))


def _earned(held: CachedPrefix | None, account: Account) -> float:
    """Return the savings open to borrowers, in BIT: the savings by TTLs, less the savings that rewrites have spent."""
    return (0.0 if held is None else held.lease.saved) + min(0.0, account.saved)


class Leases:
    """The cached prefixes of a session's branches. Not thread-safe.

    name: the session's name.
    """

    def __init__(self, journal: Journal[State], evidence: CacheEvidence, name: str) -> None:
        self._journal = journal
        self._name = name
        self._evidence = evidence
        self._held: Fold[CachedPrefix | None] = Fold(journal, None, step, "held", takes=(CachedPrefixNote,))
        self._entries = branch_entries(journal)

    def terms(
        self, parent: EntryId | None, here: EntryId | None, asking: TtlQuery, moment: Moment, *, anew: bool
    ) -> TtlTerms | None:
        """Choose the cache terms of a request at `here`, after the request at `parent`.

        moment: the call as the policy sees it, at the time of the request.
        None for a cache without TTL requests, or one that drops the entries too soon.
        """
        price = prices_for(asking.model, moment.now)
        trust = self._evidence.trust(asking.model, moment.now)
        if price is None or trust.hour == "fails":
            return None
        lifetimes = lifetimes_of(price, long=asking.long, is_proven=asking.documented or trust.hour == "holds")
        if lifetimes is None:
            return None
        state = self._journal.state_at(here)
        lasted = lifetimes.short if asking.was_short else lifetimes.long if asking.was_long else lifetimes.asked
        held = _up_to_date(self._held[parent], lifetimes, lasted, self._journal.state_at(parent).sent_at)
        if moment.now is None:
            return None
        in_hand = _in_hand(state.account, price)
        journaled = self._held[parent]
        own, sent = (0.0, None) if journaled is None else (journaled.lease.saved, journaled.lease.sent)
        request, before = SessionRequest(self._name, moment.now), SessionRequest(self._name, sent)
        size, until = moment.floor + moment.scale * moment.size, moment.now + lifetimes.asked
        lost = 0.0 if held is None else held.lease.lost_at(moment.now, lifetimes.asked)
        # no session exposes more than its whole window, and what the last pause lost is not reported yet
        most = Exposure(lifetimes.lost_with(size + lost, size + lost), own, in_hand, until)
        reserve = self._evidence.lend(request, before, most)
        found = terms(held, lifetimes, moment, in_hand, anew=anew, switched=asking.switched, reserve=reserve)
        if found is None or not found.may_expose:
            paid = replace(most, cost=lifetimes.lost_with(lost, size + lost))
            self._evidence.hold(request, paid.draw())
        if found is None:
            return None
        bridges = asking.may_cost > 0 and trust.keep_alive != "fails"
        earned = _earned(journaled, self._journal.state_at(parent).account)
        return replace(found, earned=earned, bridges=bridges, is_trial=trust.keep_alive == "unknown")

    def with_sure_reads(
        self, prices: Economics, parent: EntryId | None, head: PrefixDigests, at: float | None
    ) -> Economics:
        """Return the prices of a request behind `parent` to a provider that does not document that reads renew entries.

        Raises StoreError.

        head, at: prompt prefix and time of the request.
        """
        sure_from = 0.0 if at is None or not prices.at_marks else self._entries[parent].sure_from(head, at)
        if not sure_from or self._evidence.trust(head.model, at).renewal == "holds":
            return prices
        return replace(prices, sure_from=sure_from)

    def renewal_shown(self, entry: EntryId, usage: Usage) -> CacheVerdictNote | None:
        """Return a renewal of entries that the answer of the request at `entry` shows; None if it shows none."""
        return self._entries[entry].renewal_shown(usage)

    def share_savings(self, held: CachedPrefix, of: TtlTerms, model: str, entry: EntryId) -> None:
        """Add what an answered request saved to the savings of all sessions, and hold what a pause behind it may take.

        Raises StoreError.
        """
        account, price, lifetimes = self._journal.state_at(entry).account, prices_for(model, of.at), of.lifetimes
        in_hand = 0.0 if price is None else _in_hand(account, price)
        cost = cache_keepalive.exposed_cost(held.lease, lifetimes)
        request = SessionRequest(self._name, of.at)
        self._evidence.hold(request, Exposure(cost, held.lease.saved, in_hand, of.at + lifetimes.asked).draw())
        self._evidence.add_savings(_earned(held, account) - of.earned, of.at, request)

    def due(self, held: CachedPrefix, of: TtlTerms, usage: Usage, model: str, entry: EntryId) -> KeepAlivePlan | None:
        """Return the next keep-alive request after an answered request; None for no keep-alive."""
        state = self._journal.state_at(entry)
        price = prices_for(model, of.at)
        return None if state.hand.off or price is None else due(held, of, usage, _in_hand(state.account, price))

    def after_keepalive(
        self, behind: EntryId | None, of: TtlTerms, model: str, usage: Usage, at: float, messages: int
    ) -> tuple[CachedPrefix, float] | None:
        """Return the cached prefix after a keep-alive request, with the cost.

        None if unknown.
        """
        held, price = self._held[behind], prices_for(model, at)
        if held is None or price is None:
            return None
        spent = cost(usage, price, at)
        request = SessionRequest(self._name, of.at)
        self._evidence.hold(request, NOTHING_DRAWN)
        self._evidence.add_savings(-spent, at, request)
        return prefix_after_keepalive(held, of.lifetimes, at, spent, messages), spent
