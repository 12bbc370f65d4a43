"""What the recorded calls cost by the provider's own usage, in a terminal: parts of the bill, misses, long windows, lifetimes."""

from collections.abc import Iterator, Mapping
from typing import Final

from rich.console import Console
from rich.text import Text

from pagein.model.bill import RecordedUsage, UsageLine
from pagein.ui.figures import amount, change, count, dollars, plural, share
from pagein.ui.frame import titled_table

_PARTS: Final = {
    "read": "cache reads",
    "written": "cache writes",
    "fresh": "input without the cache",
    "output": "output",
}
_CAUSES: Final = {
    "expired": "paid again after a pause",
    "compaction": "paid again after a compaction",
    "model": "paid again after a change of model",
    "messages": "paid again after the client changed the prompt",
    "unexplained": "paid again without a known cause",
}
_OTHER: Final = "paid again for another cause"
_LINES: Final = {"5m": ("five minutes", "FORCE_PROMPT_CACHING_5M=1"), "1h": ("an hour", "ENABLE_PROMPT_CACHING_1H=1")}
_WORTH: Final = 0.005
"""The smallest saving that is told as one, as a share of the bill."""


def show_usage(console: Console, usage: RecordedUsage) -> None:
    """Print the table and what follows from it. Prints one line if no call has recorded usage."""
    whole = usage["whole"]
    console.print()
    if not whole["calls"]:
        console.print(Text("No recorded call reports its usage, so nothing is said about the agent's own cache."))
        return
    table = titled_table(f"What {plural(whole['calls'], 'recorded call')} cost, by the provider's own usage")
    table.add_column("part", overflow="fold")
    for title in ("calls", "tokens", "cost", "of the bill"):
        table.add_column(title, justify="right", no_wrap=True)
    for words, line in _rows(usage):
        cells = (words, count(line["calls"]), amount(line["tokens"]), _cost(line), share(line["cost"], whole["cost"]))
        table.add_row(*map(Text, cells))
    console.print(table)
    for sentence in _sentences(usage):
        console.print(Text(sentence))


def _rows(usage: RecordedUsage) -> Iterator[tuple[str, UsageLine]]:
    for name, words in _PARTS.items():
        yield words, usage["parts"][name]
    for words, line in sorted(_again(usage["again"]).items(), key=lambda one: -one[1]["cost"]):
        yield f"  {words}", line
    for size, line in usage["above"].items():
        if line["calls"]:
            yield f"  read beyond {count(int(size))} tokens", line


def _again(causes: Mapping[str, UsageLine]) -> dict[str, UsageLine]:
    """Return the misses by words; causes without words of their own together."""
    found: dict[str, UsageLine] = {}
    for cause, line in causes.items():
        words = _CAUSES.get(cause, _OTHER)
        had = found.get(words)
        found[words] = line if had is None else _sum(had, line)
    return found


def _sum(one: UsageLine, other: UsageLine) -> UsageLine:
    usd = None if one["usd"] is None or other["usd"] is None else one["usd"] + other["usd"]
    return UsageLine(
        cost=one["cost"] + other["cost"],
        usd=usd,
        calls=one["calls"] + other["calls"],
        tokens=one["tokens"] + other["tokens"],
    )


def _sentences(usage: RecordedUsage) -> Iterator[str]:
    missed = sum(one["tokens"] for one in usage["again"].values())
    if missed:
        calls = sum(one["calls"] for one in usage["again"].values())
        paid = usage["parts"]["written"]["tokens"] + usage["parts"]["fresh"]["tokens"]
        yield (
            f"{plural(calls, 'call')} paid {amount(missed)} tokens again, {share(missed, paid)} of all that was not read from the cache."
        )
    lasts = usage["lifetimes"]
    if lasts:
        yield from _lifetimes(lasts)
    writes = usage["long_writes"]
    if writes and writes["all"]["tokens"]:
        unused, every, followed = writes["unused"], writes["all"], writes["followed"]
        yield (
            f"Of the tokens written for an hour, {share(unused['tokens'], every['tokens'])} were never read after a pause of more "
            f"than five minutes; the premium for them was {_cost(unused)}. {share(writes['within_minute']['calls'], followed['calls'])} "
            "of these writes were followed by a call within a minute."
        )


def _lifetimes(lasts: Mapping[str, UsageLine]) -> Iterator[str]:
    recorded = lasts["recorded"]["cost"]
    told = ", ".join(
        f"with {words} {_cost(lasts[name])} ({change(lasts[name]['cost'] / recorded)})"
        for name, (words, _) in _LINES.items()
    )
    yield f"The agent's own cache lifetime: as recorded {_cost(lasts['recorded'])}, {told}."
    best = min(_LINES, key=lambda name: lasts[name]["cost"])
    words, variable = _LINES[best]
    saved = 1 - lasts[best]["cost"] / recorded
    if saved >= _WORTH:
        yield f"Without pagein, {words} would save {100 * saved:.1f} %: start Claude Code with {variable}."
    else:
        yield "Neither lifetime would save half a percent: leave the agent's setting as it is."


def _cost(line: UsageLine) -> str:
    return dollars(line["usd"]) if line["usd"] is not None else f"{amount(line['cost'])} BIT"
