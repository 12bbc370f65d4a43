"""Recommend settings by a user's own sessions. The earlier sessions choose, the later ones judge. Pure functions.

Rules of this file
------------------
1. Sessions stand in the order of their beginnings. The first two thirds choose, the last third judges.
2. A candidate that loses more quotes than `ALLOWED` of all quotes, more than `FEW_LOST`, and more than the settings in force, is
   never chosen.
3. Of the others, the cheapest on the earlier part is the choice.
4. The choice is recommended only if it saves on the later part as well, beyond what chance explains: the sum of the savings per
   session is above `SURE` standard deviations of that sum, and at least `WORTH` of the bill. Otherwise nothing changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median, variance
from typing import Final

from pagein.model.bill import Figures, SessionBill
from pagein.policy.eviction.presets import DEFAULT, PRESETS, Preset
from pagein.replay.policies.ablation import FULL, MASKING, QUIET, ablation

APPEND: Final = "append"
ALLOWED: Final = 0.015
FEW_LOST: Final = 2
SURE: Final = 1.645
"""Standard deviations: a saving by chance alone is beyond them in one of twenty histories."""
WORTH: Final = 0.005
LEAST: Final = 6
"""Sessions below which nothing is recommended."""
_CHOOSING: Final = 2 / 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """Settings to compare in a replay.

    policy: the replay's policy with these settings.
    """

    residency: Preset
    keep_alive: bool
    policy: str

    @property
    def words(self) -> str:
        """The settings as a person writes them."""
        return f"{self.residency}, keep-alive {'on' if self.keep_alive else 'off'}"


def candidates(*, masking: bool) -> tuple[Candidate, ...]:
    """Return the settings to try: each preset, with keep-alive requests and without.

    masking: whether the agent's host blocks a write of pagein's texts, so that the gateway masks arguments of old calls.
    """
    return tuple(
        Candidate(name, keep_alive, _policy(name, keep_alive=keep_alive, masking=masking))
        for name in PRESETS
        for keep_alive in (False, True)
    )


def _policy(name: Preset, *, keep_alive: bool, masking: bool) -> str:
    if name == DEFAULT:
        return FULL if keep_alive else QUIET
    missing = [*([] if keep_alive else ["keep-alive"]), *([] if masking else [MASKING])]
    return ablation(missing, name) if missing else f"{FULL}-{name}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What some sessions cost under a candidate.

    cost: share of the bill without pagein. median: the same of the median session.
    worst: the highest share of a single session.
    recalls: drawn and needed recalls.
    """

    cost: float
    median: float
    worst: float
    usd: float | None
    recalls: int
    quotes_lost: int
    quotes: int


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended settings for a user's own sessions, with the reason.

    earlier, later: number of sessions for the choice, and for the judgement.
    now: the settings in force.
    whole: the outcome of each candidate on all sessions.
    chosen: the choice of the earlier part; None if there are too few sessions.
    saving: saving of the choice on the later part against the settings in force, as a share of its bill.
    noise: a saving below this one could be chance.
    advice: the recommended settings; those in force if nothing is to change.
    why: the reason in a sentence.
    """

    earlier: int
    later: int
    now: Candidate
    whole: Mapping[Candidate, Outcome]
    chosen: Candidate | None
    saving: float
    noise: float
    advice: Candidate
    why: str


def tune(sessions: Sequence[SessionBill], tried: Sequence[Candidate], now: Candidate) -> Recommendation:
    """Return the recommendation for sessions that were replayed under every candidate.

    now: the settings in force, one of `tried`.
    """
    ordered = sorted(sessions, key=lambda one: (one["began"] is None, one["began"] or 0.0))
    cut = round(len(ordered) * _CHOOSING)
    earlier, later = ordered[:cut], ordered[cut:]
    whole = {one: outcome(ordered, one.policy) for one in tried}

    def result(
        chosen: Candidate | None, saving: float, noise: float, why: str, *, changes: bool = False
    ) -> Recommendation:
        advice = chosen if changes and chosen is not None else now
        return Recommendation(len(earlier), len(later), now, whole, chosen, saving, noise, advice, why)

    if len(ordered) < LEAST:
        return result(None, 0.0, 0.0, f"no change: fewer than {LEAST} sessions tell nothing")
    safe = [one for one in tried if _is_allowed(earlier, one, now)]
    chosen = min(safe, key=lambda one: (_cost(earlier, one.policy), tried.index(one)))
    saving, noise = _saving(later, now.policy, chosen.policy)
    if chosen == now:
        kept = "the settings in force are the cheapest of those that keep the quotes"
        if _risk(earlier, now):
            kept = "no choice that loses as few quotes as the settings in force is cheaper"
        return result(chosen, 0.0, noise, f"no change: {kept}{_risk(earlier, now)}")
    if not _is_allowed(later, chosen, now):
        return result(chosen, saving, noise, f"no change: {chosen.words} loses too many quotes in the later sessions")
    if saving <= max(noise, WORTH):
        found = "saves nothing in the later sessions"
        if saving > 0:
            found = "saves too little in the later sessions, or no more than chance explains"
        return result(chosen, saving, noise, f"no change: {chosen.words} {found}{_risk(earlier, now)}")
    return result(chosen, saving, noise, f"{chosen.words} is cheaper in the later sessions, too", changes=True)


def outcome(sessions: Sequence[SessionBill], policy: str) -> Outcome:
    """Return what sessions cost under a policy. Without sessions, everything is 0."""
    rows = [one["policies"] for one in sessions]
    shares = [row[policy]["cost"] / row[APPEND]["cost"] for row in rows if row[APPEND]["cost"]]
    base = sum(row[APPEND]["cost"] for row in rows)
    found = [row[policy] for row in rows]
    usd = [one["usd"] for one in found]
    return Outcome(
        cost=_cost(sessions, policy) / base if base else 0.0,
        median=median(shares) if shares else 0.0,
        worst=max(shares, default=0.0),
        usd=None if any(one is None for one in usd) else sum(one or 0.0 for one in usd),
        recalls=sum((one["faults"] or 0) + (one["stress_recalls"] or 0) for one in found),
        quotes_lost=sum(one["quotes_lost"] or 0 for one in found),
        quotes=sum(one["quotes_total"] or 0 for one in found),
    )


def _is_allowed(sessions: Sequence[SessionBill], candidate: Candidate, now: Candidate) -> bool:
    """Return whether a candidate keeps the quotes, or loses no more of them than the settings in force."""
    found = outcome(sessions, candidate.policy)
    return _keeps_quotes(found) or found.quotes_lost <= outcome(sessions, now.policy).quotes_lost


def _risk(sessions: Sequence[SessionBill], now: Candidate) -> str:
    if _keeps_quotes(outcome(sessions, now.policy)):
        return ""
    return f"; but {now.words}, which is in force, loses too many quotes"


def _keeps_quotes(found: Outcome) -> bool:
    return found.quotes_lost <= max(FEW_LOST, ALLOWED * found.quotes)


def _cost(sessions: Sequence[SessionBill], policy: str) -> float:
    return sum(one["policies"][policy]["cost"] for one in sessions)


def _saving(sessions: Sequence[SessionBill], now: str, then: str) -> tuple[float, float]:
    """Return what a change of policies saves, and what chance could save, both as a share of the bill of `now`."""
    differences = [_paid(one, now)["cost"] - _paid(one, then)["cost"] for one in sessions]
    base = _cost(sessions, now)
    if not base or len(differences) < 2:  # noqa: PLR2004 -- one session has no spread
        return 0.0, 1.0
    spread = sqrt(len(differences) * variance(differences))
    return sum(differences) / base, SURE * spread / base


def _paid(session: SessionBill, policy: str) -> Figures:
    return session["policies"][policy]
