"""The verdict on a bill, in plain words: the first text a reader sees."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from pagein.model.bill import Bill, Figures, Paid
from pagein.ui.billed_sessions import NOISE, losers, name_of
from pagein.ui.columns import BY_DEFAULT, ENGINE, cost_ratio, quotient
from pagein.ui.doubts import doubts
from pagein.ui.figures import amount, change, count, dollars, plural, rate, share, short

# From this number of sessions, single ones are spoken of.
_MANY = 2
_NAME = 60
_COMPACTS = "80 %"

# The policy that repeats the recorded requests.
RECORDED = "append"

# The policies available without pagein, and the ones among them that drop content for good.
_TODAY = ("append", "append-5m", "append-1h", "rolling", "clear", "compact")
_LOSSY = ("rolling", "clear", "compact")

Tone = Literal["saves", "same", "costs", "broken", "plain"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentences of a verdict.

    headline: the costs.
    tone: whether the news is good.
    spread: how single sessions fare, and which fare worse.
    loss: evicted and lost content.
    host: what the agent's own compaction would have cost.
    rival: a cheaper policy.
    floor: the prompt prefix, out of reach of every policy.
    doubt: differences between the recordings and this bill.
    """

    headline: str
    tone: Tone
    spread: str = ""
    loss: str = ""
    host: str = ""
    rival: str = ""
    floor: str = ""
    doubt: str = ""

    @property
    def text(self) -> str:
        """The verdict as one paragraph."""
        parts = (self.headline, self.spread, self.loss, self.host, self.rival, self.floor, self.doubt)
        return " ".join(part for part in parts if part)


def verdict(bill: Bill) -> Verdict:
    """Describe the sums of a bill for a person."""
    return replace(_verdict(bill), doubt=doubts(bill))


def _verdict(bill: Bill) -> Verdict:
    base, kept = bill["policies"].get(bill["baseline"]), bill["policies"].get(ENGINE)
    engine = bill["policies"].get(BY_DEFAULT, kept)
    many = bill["sessions"] != 1
    who = f"These {count(bill['sessions'])} sessions" if many else "This session"
    if base is None:
        return Verdict(f"{who} were replayed." if many else f"{who} was replayed.", "plain")
    headline = f"{who} {_paid_cost(bill['baseline'], base)}."
    floor = _floor(base)
    if engine is None or bill["baseline"] in (ENGINE, BY_DEFAULT):
        return Verdict(headline, "plain", floor=floor)
    said, tone = _compare_bills(base, engine, "they" if many else "it")
    if kept is not None and kept["keep_alives"]:
        said = _with_keep_alive(said, base, engine, kept)
    tone = "broken" if _is_broken(engine) else tone
    return Verdict(
        f"{headline} {said}",
        tone,
        spread=_spread_words(bill, BY_DEFAULT if BY_DEFAULT in bill["policies"] else ENGINE),
        loss=_loss_warning(engine),
        host=_compaction_words(bill),
        rival=_cheaper(bill, engine),
        floor=floor,
    )


def _paid_cost(baseline: str, base: Figures) -> str:
    """Return the cost paid, if the baseline is the recorded policy, else the cost as a hypothesis."""
    where = "" if base["usd"] is None else " at list prices"
    unit = "" if base["usd"] is not None else "; a BIT is the price of one input token without a cache"
    return (
        f"cost {money(base)}{where} as recorded, without pagein{unit}"
        if baseline == RECORDED
        else f"would have cost {money(base)}{where} under {baseline}{unit}"
    )


def money(figures: Paid) -> str:
    """Format a cost in dollars if they are known, else in BIT."""
    return f"{amount(figures['cost'])} BIT" if figures["usd"] is None else dollars(figures["usd"])


def _part(cost: float | None, figures: Paid) -> str:
    """Format a part of a bill like the bill."""
    if figures["usd"] is None or not figures["cost"]:
        return f"{amount(cost)} BIT"
    return dollars((cost or 0.0) * figures["usd"] / figures["cost"])


def _compare_bills(base: Figures, engine: Figures, they: str) -> tuple[str, Tone]:
    ratio = cost_ratio(engine, base)
    if ratio is None:
        return "There was nothing to pay for.", "same"
    percent = f"{abs(100 * (ratio - 1)):.1f} %"
    if ratio < 1 - NOISE:
        return f"With pagein {they} would have cost {money(engine)}: {percent} less.", "saves"
    if ratio > 1 + NOISE:
        return f"With pagein {they} would have cost {money(engine)}: {percent} more. It does not pay here.", "costs"
    why = "" if engine["stubs"] else "nothing was worth paging out, and "
    return f"pagein saves nothing here: {why}the cost is the same.", "same"


def _with_keep_alive(said: str, base: Figures, engine: Figures, kept: Figures) -> str:
    """Extend the sentence by the result with keep-alive requests, which the user has to enable."""
    if engine is kept:
        return said.replace("With pagein ", "With pagein and its --keep-alive ", 1)
    first, _, rest = said.partition(". ")
    changed = change(cost_ratio(kept, base))
    told = f"{first.removesuffix('.')} (with --keep-alive {money(kept)}, {changed})."
    return f"{told} {rest}" if rest else told


def _spread_words(bill: Bill, policy: str) -> str:
    """Return how single sessions fare, since a sum hides all but the longest; "" for a single session."""
    found = bill["spread"].get(policy)
    if found is None or found["sessions"] < _MANY:
        return ""
    said = (
        f"The median session changes by {change(found['median'])}; half of them lie between {change(found['low'])} and "
        f"{change(found['high'])}. {plural(found['cheaper'], 'session is', 'sessions are')} cheaper,"
    )
    lost = losers(bill, policy)
    if not lost:
        return f"{said} none dearer."
    extra = sum(one["policies"][policy]["cost"] - one["policies"][bill["baseline"]]["cost"] for one in lost)
    whole = total(one["policies"][policy] for one in lost)
    return (
        f"{said} {count(len(lost))} dearer, by {_part(extra, whole)} together, at most {change(found['worst'])} "
        f'("{short(name_of(lost[0]), _NAME)}" loses most).'
    )


def _compaction_words(bill: Bill) -> str:
    """Return what the agents' own compaction would have cost at the real windows; "" if it was not replayed."""
    both = [one for one in bill["per_session"] if "compact" in one["policies"] and RECORDED in one["policies"]]
    short_of_it = [one["policies"] for one in both if one["policies"]["compact"]["epochs"]]
    if not both:
        return ""
    if not short_of_it:
        which = "The session never" if bill["sessions"] == 1 else "No session"
        return f"{which} came near the end of its model's window, where an agent compacts."
    compact, append = (total(one[name] for one in short_of_it) for name in ("compact", RECORDED))
    which = "The session" if bill["sessions"] == 1 else plural(len(short_of_it), "session")
    ours = BY_DEFAULT if all(BY_DEFAULT in one for one in short_of_it) else ENGINE
    beside = ""
    if all(ours in one for one in short_of_it):
        beside = f", and {money(total(one[ours] for one in short_of_it))} with pagein"
    return (
        f"{which} came near the end of the model's window. With the agent's own compaction at {_COMPACTS} of it, "
        f"{'it' if len(short_of_it) == 1 else 'they'} would have cost {money(compact)} in place of {money(append)}{beside}; "
        "nothing brings back what a summary drops."
    )


def total(some: Iterable[Figures]) -> Paid:
    """Return the sum of bills: BIT, and dollars if each of them is known."""
    each = [(one["cost"], one["usd"]) for one in some]
    known = [usd for _, usd in each if usd is not None]
    return Paid(cost=sum(cost for cost, _ in each), usd=sum(known) if len(known) == len(each) else None)


def _cheaper(bill: Bill, engine: Figures) -> str:
    """Return a sentence on a policy available today and cheaper than pagein, or ""."""
    base = bill["policies"][bill["baseline"]]
    shares = {name: cost_ratio(bill["policies"][name], base) or 0.0 for name in _TODAY if name in bill["policies"]}
    name = min(shares, key=shares.__getitem__, default="")
    if not name or name == bill["baseline"] or shares[name] >= (cost_ratio(engine, base) or 0.0) * (1 - NOISE):
        return ""
    lossy = ", but nothing brings back what it drops" if name in _LOSSY else ""
    return f"Cheaper here: {name} ({change(shares[name])}){lossy}."


def _is_broken(engine: Figures) -> bool:
    return bool(engine["unrecoverable_bytes"] or engine["refused"])


def _loss_warning(engine: Figures) -> str:
    if engine["unrecoverable_bytes"]:
        return f"BROKEN: {plural(engine['unrecoverable_bytes'], 'byte')} did not come back exactly. Please report this."
    if engine["refused"]:
        return f"BROKEN: a provider would refuse {plural(engine['refused'], 'request')}. Please report this."
    if not engine["stubs"]:
        return "Nothing left the window, so nothing was lost."
    left = plural(engine["stubs"], "time")
    said = f"Tool results left the window {left} and 0 bytes were lost: each came back byte for byte."
    return " ".join(part for part in (said, _need_words(engine), _unseen(engine)) if part)


def _need_words(engine: Figures) -> str:
    recalls = (engine["faults"] or 0) + (engine["stress_recalls"] or 0)
    if not recalls:
        return "None was needed again."
    costing = f"{_part(engine['recall_cost'], engine)} for recalls {'is' if engine['usd'] else 'are'} in that price."
    drawn = engine["stress_recalls"] or 0
    if not engine["faults"]:
        return f"No later step needed any of them; {plural(drawn, 'recall was', 'recalls were')} assumed all the same, and {costing}"
    per = rate(quotient(100 * engine["faults"], engine["calls"]))
    more = f", {plural(drawn, 'more recall was', 'more recalls were')} assumed" if drawn else ""
    return f"A later step needed {count(engine['faults'])} of them again ({per} per 100 calls){more}; {costing}"


def _unseen(engine: Figures) -> str:
    if not engine["quotes_total"]:
        return ""
    if not engine["quotes_lost"]:
        return f"No edit lost sight of the text it quotes ({plural(engine['quotes_total'], 'quote')})."
    return f"{count(engine['quotes_lost'])} of {plural(engine['quotes_total'], 'edit quote')} had to be recalled before the edit."


def _floor(base: Figures) -> str:
    if not base["floor_tokens"]:
        return ""
    return (
        f"System prompt and tool schemas are {share(base['floor_tokens'], base['prompt_tokens'])} of all prompt tokens "
        f"({amount(base['floor_tokens'])} of {amount(base['prompt_tokens'])}). No policy here changes that share; "
        "the setting floor_paging of the gateway does."
    )
