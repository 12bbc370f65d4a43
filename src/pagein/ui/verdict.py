"""The verdict on a bill, in plain words: the first text a reader sees."""

from dataclasses import dataclass, replace
from typing import Literal

from pagein.model.bill import Bill, Figures
from pagein.ui.columns import BY_DEFAULT, ENGINE, quotient
from pagein.ui.doubts import doubts
from pagein.ui.figures import amount, change, count, dollars, plural, rate, share

# A difference below one part in two thousand is printed as 0.0 %.
_NOISE = 0.0005

# The policy that repeats the recorded requests.
_RECORDED = "append"

# The policies available without pagein, and the ones among them that drop content for good.
_TODAY = ("append", "append-5m", "append-1h", "rolling", "clear", "compact")
_LOSSY = ("rolling", "clear", "compact")

Tone = Literal["saves", "same", "costs", "broken", "plain"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentences of a verdict.

    headline: the costs.
    tone: whether the news is good.
    loss: evicted and lost content.
    rival: a cheaper policy.
    floor: the prompt prefix, out of reach of every policy.
    doubt: differences between the recordings and this bill.
    """

    headline: str
    tone: Tone
    loss: str = ""
    rival: str = ""
    floor: str = ""
    doubt: str = ""

    @property
    def text(self) -> str:
        """The verdict as one paragraph."""
        return " ".join(part for part in (self.headline, self.loss, self.rival, self.floor, self.doubt) if part)


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
    said = f"{said} {fitted}" if (fitted := _compaction_words(bill)) else said
    if kept is not None and kept["keep_alives"]:
        said = _with_keep_alive(said, base, engine, kept)
    tone = "broken" if _is_broken(engine) else tone
    return Verdict(f"{headline} {said}", tone, loss=_loss_warning(engine), rival=_cheaper(bill, engine), floor=floor)


def _paid_cost(baseline: str, base: Figures) -> str:
    """Return the cost paid, if the baseline is the recorded policy, else the cost as a hypothesis."""
    return (
        f"cost {money(base)} as recorded ({baseline})"
        if baseline == _RECORDED
        else f"would have cost {money(base)} under {baseline}"
    )


def money(figures: Figures) -> str:
    """Format a cost in BIT, and in dollars if known."""
    usd = "" if figures["usd"] is None else f" ({dollars(figures['usd'])})"
    return f"{amount(figures['cost'])} BIT{usd}"


def _compare_bills(base: Figures, engine: Figures, they: str) -> tuple[str, Tone]:
    ratio = quotient(engine["cost"], base["cost"])
    if ratio is None:
        return "There was nothing to pay for.", "same"
    percent = f"{abs(100 * (ratio - 1)):.1f} %"
    if ratio < 1 - _NOISE:
        return f"With pagein {they} would have cost {money(engine)}: {percent} less.", "saves"
    if ratio > 1 + _NOISE:
        return f"With pagein {they} would have cost {money(engine)}: {percent} more. It does not pay here.", "costs"
    why = "" if engine["stubs"] else "nothing was worth paging out, and "
    return f"pagein saves nothing here: {why}the cost is the same.", "same"


def _with_keep_alive(said: str, base: Figures, engine: Figures, kept: Figures) -> str:
    """Extend the sentence by the result with keep-alive requests, which the user has to enable."""
    if engine is kept:
        return said.replace("With pagein ", "With pagein and its --keep-alive ", 1)
    first, _, rest = said.partition(". ")
    changed = change(quotient(kept["cost"], base["cost"]))
    told = f"{first.removesuffix('.')} (with --keep-alive {money(kept)}, {changed})."
    return f"{told} {rest}" if rest else told


def _compaction_words(bill: Bill) -> str:
    """Return the cost of compaction for recordings too large for the model's window; "" if all fit."""
    over = [one["policies"] for one in bill["per_session"] if "beyond_window" in one["flags"]]
    over = [one for one in over if "compact" in one and _RECORDED in one]
    if not over:
        return ""
    compact, append = (sum(one[name]["cost"] for one in over) for name in ("compact", _RECORDED))
    which = "It does" if bill["sessions"] == 1 else f"{plural(len(over), 'session does', 'sessions do')}"
    return (
        f"{which} not fit into the window of these prices, where an agent has to compact: that would cost {amount(compact)} BIT "
        f"in place of append's {amount(append)}."
    )


def _cheaper(bill: Bill, engine: Figures) -> str:
    """Return a sentence on a policy available today and cheaper than pagein, or ""."""
    costs = {name: bill["policies"][name]["cost"] for name in _TODAY if name in bill["policies"]}
    name = min(costs, key=costs.__getitem__, default="")
    if not name or name == bill["baseline"] or costs[name] >= engine["cost"] * (1 - _NOISE):
        return ""
    lossy = ", but nothing brings back what it drops" if name in _LOSSY else ""
    base = bill["policies"][bill["baseline"]]["cost"]
    return f"Cheaper here: {name} ({change(quotient(costs[name], base))}){lossy}."


def _is_broken(engine: Figures) -> bool:
    return bool(engine["unrecoverable_bytes"] or engine["refused"])


def _loss_warning(engine: Figures) -> str:
    if engine["unrecoverable_bytes"]:
        return f"BROKEN: {plural(engine['unrecoverable_bytes'], 'byte')} did not come back exactly. Please report this."
    if engine["refused"]:
        return f"BROKEN: a provider would refuse {plural(engine['refused'], 'request')}. Please report this."
    if not engine["stubs"]:
        return "Nothing left the window, so nothing was lost."
    left = plural(engine["stubs"], "tool result")
    said = f"{left} left the window and 0 bytes were lost: each came back byte for byte."
    return " ".join(part for part in (said, _need_words(engine), _unseen(engine)) if part)


def _need_words(engine: Figures) -> str:
    recalls = (engine["faults"] or 0) + (engine["stress_recalls"] or 0)
    if not recalls:
        return "None was needed again."
    costing = f"{amount(engine['recall_cost'])} BIT for recalls are in that price."
    drawn = engine["stress_recalls"] or 0
    if not engine["faults"]:
        return f"No later step needed any of them; {plural(drawn, 'recall was', 'recalls were')} drawn to be fair, and {costing}"
    per = rate(quotient(100 * engine["faults"], engine["calls"]))
    more = f", {plural(drawn, 'more was', 'more were')} drawn to be fair" if drawn else ""
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
