"""The columns of the bill, defined once: title, meaning, and the cell for a row of figures.

The terminal, the page and docs/reference/json.md use these columns. The one-line descriptions of the policies are here
too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pagein.model.bill import Bill, Figures, Paid
from pagein.ui.figures import ABSENT, amount, change, count, dollars, rate, ratio

OPTIMUM = "optimum"
ENGINE = "pagein"
BY_DEFAULT = "pagein-quiet"
"""The policy of `pagein serve` by default."""

POLICY_MEANINGS: Mapping[str, str] = {
    "none": "no cache: every prompt token at the full price",
    "append": "append-only, with the cache lifetime the recording used",
    "append-5m": "append-only, five-minute cache",
    "append-1h": "append-only, one-hour cache",
    "rolling": "results older than the last ten calls masked at every call",
    "clear": "vendor-style clearing: above 100k tokens, all but the last three results",
    "compact": "compaction to a summary at 80 % of the window",
    "pagein": "old results paged out in batches, recalled byte for byte; cache lifetimes chosen, pauses bridged by keep-alive requests",
    "pagein-quiet": "the same without keep-alive requests: the gateway without --keep-alive",
    "pagein-balanced": "pagein with the preset `balanced`, file texts masked in old calls: file reads leave sooner",
    "pagein-balanced-quiet": "the same without keep-alive requests",
    "pagein-thrifty": "pagein with the preset `thrifty`, file texts masked in old calls: the lowest bill, most quotes lost",
    "pagein-thrifty-quiet": "the same without keep-alive requests",
    "pooled": "the pooled layout: results as objects in pools, which leave in batches when no longer recent and return by activate",
    "pooled-spec": "the pooled layout as specified: the active contents after the conversation, sent again with every request",
    "tiered": "the tiered layout: each file that was read whole stands once, in tiers in front of the conversation",
    "optimum": "the cheapest times to evict results that were shown whole, and long arguments, knowing the whole session",
    "optimum-results": "the same for results alone: the limit of the preset `careful`, which masks no arguments",
    "bound": "position-free lower bound: each text paid only where it is used",
}


POLICY_LABELS: Mapping[str, str] = {
    "none": "no cache at all",
    "append": "as recorded, no pagein",
    "append-5m": "5-minute cache",
    "append-1h": "1-hour cache",
    "rolling": "old results masked",
    "clear": "vendor's clearing",
    "compact": "agent compacts",
    "pagein": "pagein, keep-alive on",
    "pagein-quiet": "pagein by default",
    "pagein-balanced": "balanced, keep-alive on",
    "pagein-balanced-quiet": "preset balanced",
    "pagein-thrifty": "thrifty, keep-alive on",
    "pagein-thrifty-quiet": "preset thrifty",
    "pooled": "layout pooled",
    "pooled-spec": "pooled to the letter",
    "tiered": "layout tiered",
    "optimum": "best in hindsight",
    "optimum-results": "best of results alone",
    "bound": "lower bound",
}
"""What a policy is, in a few words."""


def policy_meaning(policy: str) -> str:
    """Return the description of a policy, in a line; empty for an unknown policy."""
    whole, _, layers = policy.partition("without-")
    missing = layers.replace("+", ", ")
    return f"{whole.removesuffix('-') or ENGINE} without {missing}" if missing else POLICY_MEANINGS.get(policy, "")


@dataclass(frozen=True, slots=True)
class BillRow:
    """A policy on a session or sum: the figures, with those of the baseline and of the optimum, if known."""

    name: str
    figures: Figures
    baseline: Figures | None = None
    optimum: Figures | None = None

    @property
    def ratio(self) -> float | None:
        """Cost against the baseline, in dollars if both are known."""
        return cost_ratio(self.figures, self.baseline) if self.baseline else None

    @property
    def over_optimum(self) -> float | None:
        """Cost against the offline optimum, in dollars if both are known."""
        return cost_ratio(self.figures, self.optimum) if self.optimum else None

    @property
    def faults_per_hundred(self) -> float | None:
        """Faults per hundred recorded calls."""
        faults, calls = self.figures["faults"], self.figures["calls"]
        return None if faults is None or not calls else 100 * faults / calls


@dataclass(frozen=True, slots=True)
class BillColumn:
    """A column of the bill.

    title: heading.
    meaning: description in a sentence.
    cell: returns the text for a row.
    rank: columns of higher rank are dropped first on a narrow terminal; 0 stays.
    """

    title: str
    meaning: str
    cell: Callable[[BillRow], str]
    rank: int = 0


def quotient(part: float | None, whole: float | None) -> float | None:
    """Return the part divided by the whole, or None without a divisor."""
    return None if part is None or not whole else part / whole


def cost_ratio(part: Paid, whole: Paid) -> float | None:
    """Return a cost divided by another, or None if that is zero. In dollars if both are known: BIT of two models differ in price."""
    if part["usd"] is not None and whole["usd"]:
        return part["usd"] / whole["usd"]
    return quotient(part["cost"], whole["cost"])


def rows(policies: Mapping[str, Figures], baseline: str) -> list[BillRow]:
    """Return the rows of a table, in the order of the bill."""
    return [BillRow(name, figures, policies.get(baseline), policies.get(OPTIMUM)) for name, figures in policies.items()]


def _kept_alive(row: BillRow) -> str:
    """Return the cost of keep-alive requests; absent for the many policies without any."""
    return _part(row, "keep_alive_cost") if row.figures["keep_alives"] else ABSENT


def _part(row: BillRow, name: Literal["recall_cost", "keep_alive_cost"]) -> str:
    """Return a part of the bill in dollars if the bill is known in dollars, else in BIT."""
    part, whole = row.figures[name], row.figures
    if part is None or whole["usd"] is None or not whole["cost"]:
        return amount(part)
    return dollars(part * whole["usd"] / whole["cost"])


def _bit(row: BillRow) -> str:
    """Return the bill in BIT; absent if it is known in dollars."""
    return amount(row.figures["cost"]) if row.figures["usd"] is None else ABSENT


def _label(row: BillRow) -> str:
    return POLICY_LABELS.get(row.name, ABSENT)


def _layout(row: BillRow) -> str:
    """Return the layout; absent for the default, so that the column appears only in comparisons of layouts."""
    return ABSENT if row.figures["layout"] == "inline" else row.figures["layout"]


def quotes(row: BillRow) -> str:
    """Return the visible / lost / total exact edit quotes."""
    parts = (row.figures["quotes_visible"], row.figures["quotes_lost"], row.figures["quotes_total"])
    return ABSENT if parts[2] is None else " / ".join(map(count, parts))


COST: tuple[BillColumn, ...] = (
    BillColumn("policy", "How old content is treated.", lambda row: row.name),
    BillColumn("that is", "The same in a few words.", _label, 3),
    BillColumn("layout", "How the prompt is laid out; - is inline.", _layout, 4),
    BillColumn("dollars", "The whole bill in US dollars, at list prices.", lambda row: dollars(row.figures["usd"])),
    BillColumn("change", "Cost against the baseline; negative is cheaper.", lambda row: change(row.ratio)),
    BillColumn(
        "cost", "The whole bill in BIT: one input token without a cache costs 1 BIT. For prices without dollars.", _bit
    ),
    BillColumn("read", "Prompt tokens read from the cache.", lambda row: amount(row.figures["read"]), 4),
    BillColumn("written", "Prompt tokens written to the cache.", lambda row: amount(row.figures["written"]), 4),
    BillColumn("uncached", "Prompt tokens neither read nor written.", lambda row: amount(row.figures["fresh"]), 5),
    BillColumn("output", "Tokens the model wrote.", lambda row: amount(row.figures["output"]), 6),
    BillColumn(
        "prompt",
        "All prompt tokens, recalls and keep-alive requests included.",
        lambda row: amount(row.figures["prompt_tokens"]),
        5,
    ),
    BillColumn(
        "vs optimum", "Cost above the best that hindsight could choose.", lambda row: change(row.over_optimum), 2
    ),
)

DEEDS: tuple[BillColumn, ...] = (
    BillColumn("policy", "How old content is treated.", lambda row: row.name),
    BillColumn(
        "left",
        "How often a stub, a preview, a marker or a diff replaced a tool result; it may be the same result twice.",
        lambda row: count(row.figures["stubs"]),
    ),
    BillColumn("batches", "Batches in which they left (epochs).", lambda row: count(row.figures["epochs"])),
    BillColumn(
        "needed/100",
        "How often a later step needed one of them again, per 100 calls. Each time it is recalled.",
        lambda row: rate(row.faults_per_hundred),
    ),
    BillColumn(
        "assumed",
        "Recalls charged beyond those, by a model of an agent's further needs.",
        lambda row: count(row.figures["stress_recalls"]),
        5,
    ),
    BillColumn("recall cost", "Price of all recalls; part of the bill.", lambda row: _part(row, "recall_cost"), 2),
    BillColumn(
        "read again", "Reads in the recording of things that had left.", lambda row: count(row.figures["rereads"]), 4
    ),
    BillColumn("kept alive", "Price of keep-alive requests; part of the bill.", _kept_alive, 7),
    BillColumn("quotes seen/lost/all", "Edit quotes visible, lost against append, of all.", quotes, 1),
    BillColumn("refused", "Requests a provider would refuse.", lambda row: count(row.figures["refused"]), 3),
    BillColumn(
        "bytes lost",
        "Bytes that left and did not come back exactly.",
        lambda row: count(row.figures["unrecoverable_bytes"]),
    ),
)


def sum_columns(bill: Bill) -> tuple[BillColumn, ...]:
    """Return the columns of the summary table: with several sources, their unweighted mean is beside the pooled ratio."""
    if len(bill["groups"]) < 2:  # noqa: PLR2004 - the mean of one is no news
        return COST
    means = bill["macro"]

    def mean(row: BillRow) -> str:
        return ratio(means[row.name]["ratio"]) if row.name in means else ABSENT

    return (
        *COST[:5],
        BillColumn("macro", "Mean of cost / baseline over the coding sources, each counting once.", mean, 1),
        *COST[5:],
    )


def did_something(all_rows: Sequence[BillRow]) -> list[BillRow]:
    """Return the rows of policies that changed the window, and always the engine's: other policies have no actions to
    report.
    """
    return [row for row in all_rows if row.name == ENGINE or row.figures["stubs"] or row.figures["epochs"]]


def columns_for(columns: Sequence[BillColumn], all_rows: Sequence[BillRow]) -> list[BillColumn]:
    """Return the columns that apply to any of the rows: dollars, for example, only if known."""
    return [column for column in columns if any(column.cell(row) != ABSENT for row in all_rows)]
