"""The status of gateway and store, in lines for a terminal, from the values printed by `pagein status --json`."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NotRequired, TypedDict

from rich.console import Console
from rich.text import Text

from pagein.ui.figures import amount, count, dollars, plain, plural, share
from pagein.ui.row_tables import RowColumn, TableRow, print_rows

_DEAREST: Final = 3
_SHORT: Final = 8
_TOTALS: Final = (("dollars", 0), ("saved", 1), ("calls", 2), ("from cache", 3), ("recalls", 4))
_BLAME: Final = {"client": "by the client", "us": "by pagein", "provider": "by the provider", "nobody": "by nobody"}
_NAMELESS: Final = "(passed through, of no session)"


class SessionStatus(TypedDict):
    """A session seen by the gateway since its start.

    cost, saved: BIT (uncached input tokens).
    usd, saved_usd: the same in dollars; None without a price in dollars.
    unbilled: price of a subscription's calls if paid with a key, BIT.
    last: time of the last call, seconds since 1970.
    """

    name: str
    model: str
    calls: int
    epochs: int
    recalls: int
    cost: float
    unbilled: float
    saved: float
    usd: float | None
    saved_usd: float | None
    last: float


class GatewayStatus(TypedDict):
    """The status of the gateway.

    problem: reason for missing data, "" without a problem.
    mode: the current mode, in words.
    since: start of the gateway, seconds since 1970.
    storing: why storing has stopped, with the remedy, "" while it works.
    memory: why memory does not follow the store, with the remedy, "" while it does.
    """

    url: str
    problem: str
    version: str
    since: float | None
    mode: str
    storing: str
    memory: str
    sessions: list[SessionStatus]


class StoreStatus(TypedDict):
    """The status of the store.

    bytes: size of its files, None for a database.
    index_bytes: size of the index of searches, which can be made again; None without one.
    ended: number of sessions reported as ended.
    newest: time of the last change, seconds since 1970.
    leaving: number of sessions whose journals will be removed. leaves: the earliest time of that, seconds since 1970.
    """

    where: str
    problem: str
    bytes: int | None
    index_bytes: int | None
    sessions: int
    ended: int
    newest: float | None
    leaving: int
    leaves: float | None


class AbsentCount(TypedDict):
    """How many texts left the windows in one way, were recalled, and would be recalled in a replay's stress model."""

    absent: int
    recalled: int
    drawn: int


class RecallStatus(TypedDict):
    """The recalls of every session in the store.

    calls: their model calls. usd: their bill in dollars, without calls of unknown price.
    recalled_usd, drawn_usd: what the recalls cost by a replay's charge, and what the drawn ones would.
    """

    calls: int
    evicted: AbsentCount
    previewed: AbsentCount
    usd: float
    recalled_usd: float
    drawn_usd: float


class MissStatus(TypedDict):
    """The cache misses of one cause: its word, who caused them (client, us, provider or nobody), calls, and tokens not read."""

    cause: str
    who: str
    calls: int
    tokens: int


class CostStatus(TypedDict):
    """The cost of all stored sessions since a moment, at list prices.

    since: seconds since 1970. usd: dollars. saved: dollars by pagein's own estimate; negative for a loss.
    unpriced: calls without a known price; they count in no sum.
    dearer: sessions that pagein made dearer, with the dollars, the largest first.
    misses: misses of the provider's cache by cause, the most tokens first.
    """

    since: float
    sessions: int
    calls: int
    usd: float
    saved: float
    unpriced: int
    dearer: dict[str, float]
    misses: list[MissStatus]


class CostsStatus(TypedDict):
    """What the sessions of the store cost today, since midnight here, and in the last seven days.

    unread: sessions of these days that are left out, because reading them takes too long.
    """

    today: CostStatus
    week: CostStatus
    unread: int


class Status(TypedDict):
    """The status of gateway and store together.

    costs: present only if the store can be read. recalls: present only if asked for, and if the store can be read.
    """

    gateway: GatewayStatus
    store: StoreStatus
    costs: NotRequired[CostsStatus]
    recalls: NotRequired[RecallStatus]


def show_totals(console: Console, by: str, rows: Sequence[Mapping[str, Any]], unread: int) -> None:
    """Print the costs by session, agent, project, model or day, from the values of `pagein status --by --json`."""
    if not rows:
        console.print(Text("no calls in this store in this time; --since 4w looks further back"), soft_wrap=True)
        return
    columns = [RowColumn(title, rank, "right") for title, rank in _TOTALS]
    if by == "session":
        columns = [RowColumn("session"), *columns]
    names = [one["name"] for one in rows]
    cells = [
        TableRow(
            (*([_short(one["name"], names)] if by == "session" else []), *_total(one)), one["title"] or one["name"]
        )
        for one in rows
    ]
    print_rows(console, columns, "first words" if by == "session" else "day (UTC)" if by == "day" else by, cells)
    if unread:
        console.print(
            Text(f"{plural(unread, 'session')} not counted; the page of pagein serve counts all", style="dim")
        )


def _short(name: str, names: Sequence[str]) -> str:
    """Return a beginning that no other of the names has, or the whole name."""
    short = name[:_SHORT]
    others = (one for one in names if not one.startswith(f"{name}/"))  # of its sub-agents
    return short if sum(one.startswith(short) for one in others) == 1 else name


def _total(one: Mapping[str, Any]) -> tuple[str, ...]:
    prompt = one["read"] + one["written"] + one["fresh"]
    cached = share(one["read"], prompt) if prompt else "-"
    return dollars(one["usd"]), dollars(one["saved_usd"]), count(one["calls"]), cached, count(one["recalls"])


def status_lines(status: Status, most: int) -> str:
    """Return the status as text. most: maximum number of sessions listed."""
    return "\n".join(
        plain(line)
        for line in (
            *_costs(status.get("costs")),
            *_gateway(status["gateway"], most),
            *_store(status["store"]),
            *_recalls(status.get("recalls")),
        )
    )


def _costs(costs: CostsStatus | None) -> Iterator[str]:
    if costs is None:
        return
    for label, named, one in (("today ", "since midnight", costs["today"]), ("7 days", "until now", costs["week"])):
        if not one["calls"]:
            yield f"{label}    no calls in this store {named}"
            continue
        made = f"{plural(one['calls'], 'call')} in {plural(one['sessions'], 'session')}"
        doing = (
            f"pagein saved {dollars(one['saved'])}"
            if one["saved"] >= 0
            else f"pagein has cost {dollars(-one['saved'])} so far"
        )
        unpriced = f"; {plural(one['unpriced'], 'call')} without a known price not counted" if one["unpriced"] else ""
        yield f"{label}    {dollars(one['usd'])} at list prices for {made}; {doing}, by its own estimate{unpriced}"
    if dearer := costs["week"]["dearer"]:
        shown = ", ".join(f"{name} by {dollars(usd)}" for name, usd in [*dearer.items()][:_DEAREST])
        more = f", and {count(len(dearer) - _DEAREST)} more" if len(dearer) > _DEAREST else ""
        yield f"dearer    with pagein than without it: {shown}{more}"
    yield from _misses(costs["week"]["misses"])
    if costs["unread"]:
        yield f"          {plural(costs['unread'], 'session')} of these days not counted; the page of pagein serve counts all"


def _misses(misses: Sequence[MissStatus]) -> Iterator[str]:
    if not misses:
        return
    calls, tokens = (sum(one[name] for one in misses) for name in ("calls", "tokens"))
    yield f"misses    {plural(calls, 'call')} of the 7 days read {count(tokens)} tokens less from the cache than was there; by cause:"
    rows = [
        (one["cause"] or "told by the provider", _BLAME.get(one["who"], one["who"]), plural(one["calls"], "call"))
        for one in misses
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, one in zip(rows, misses, strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {cells}  {count(one['tokens'])} tokens"


def week_line(costs: CostsStatus) -> str:
    """Return what pagein saved in the last seven days, in one line; "" without calls of a known price."""
    week = costs["week"]
    before = week["usd"] + week["saved"]
    if not week["usd"]:
        return ""
    doing = (
        f"they saved {dollars(week['saved'])} of {dollars(before)} ({share(week['saved'], before)})"
        if week["saved"] >= 0
        else f"they have cost {dollars(-week['saved'])} more than without pagein"
    )
    unread = f"; {plural(costs['unread'], 'session')} not counted" if costs["unread"] else ""
    return plain(
        f"last 7 days in this store: {dollars(week['usd'])} for {plural(week['calls'], 'call')}; "
        f"with the settings then in force {doing}, by pagein's own estimate{unread}"
    )


def _gateway(gateway: GatewayStatus, most: int) -> Iterator[str]:
    if gateway["problem"]:
        yield f"gateway   {gateway['problem']}"
        return
    yield f"gateway   {gateway['url']}, version {gateway['version']}, {gateway['mode']}, since {_moment(gateway['since'])}"
    if gateway["storing"]:
        yield f"storing   has stopped: {gateway['storing']}"
    if gateway["memory"]:
        yield f"memory    {gateway['memory']}"
    sessions = gateway["sessions"]
    saved, cost = sum(one["saved_usd"] or 0.0 for one in sessions), sum(one["usd"] or 0.0 for one in sessions)
    if cost + saved > 0:
        yield f"savings   {dollars(saved)} of {dollars(cost + saved)} ({share(saved, cost + saved)}) since its start, estimated"
    yield f"sessions  {plural(len(sessions), 'session')}" + ("" if sessions else " since its start")
    for one in sessions[:most]:
        deeds = f"{plural(one['calls'], 'call')}, {plural(one['epochs'], 'epoch')}, {plural(one['recalls'], 'recall')}"
        unbilled = f"{amount(one['unbilled'])} BIT with a key"
        usd, saved_usd = one["usd"], one["saved_usd"] or 0.0
        paid = unbilled if one["unbilled"] else f"{amount(one['cost'])} BIT" if usd is None else dollars(usd)
        gain = f"{amount(one['saved'])} saved" if usd is None else f"{dollars(saved_usd)} saved"
        named = "  ".join(filter(None, (one["name"] or _NAMELESS, one["model"])))
        yield f"  {named}  {deeds}, {paid}, {gain}, last {_moment(one['last'])}"
    if len(sessions) > most:
        yield f"  and {count(len(sessions) - most)} more"


def _store(store: StoreStatus) -> Iterator[str]:
    if store["problem"]:
        yield f"store     {store['problem']}"
        return
    size = "" if store["bytes"] is None else f", {store['bytes'] / 1e6:.1f} MB"
    if store["index_bytes"] is not None:
        size += f" and {store['index_bytes'] / 1e6:.1f} MB of search index"
    ended = f" ({count(store['ended'])} ended)" if store["ended"] else ""
    newest = "" if store["newest"] is None else f", last change {_moment(store['newest'])}"
    yield f"store     {store['where']}{size}, {plural(store['sessions'], 'session')}{ended}{newest}"
    if store["leaving"]:
        yield (
            f"retention {plural(store['leaving'], 'session')} unused for long will lose their journals, from {_moment(store['leaves'])} on; "
            "objects stay. The settings retention = 0 and quota = 0 keep them"
        )


def _recalls(recalls: RecallStatus | None) -> Iterator[str]:
    if recalls is None:
        return
    yield f"recalls   in {plural(recalls['calls'], 'call')}; a replay charges as many as its stress model draws"
    for named, one in (("evicted texts", recalls["evicted"]), ("previewed outputs", recalls["previewed"])):
        parts = [f"{count(one[name])} ({share(one[name], one['absent'])})" for name in ("recalled", "drawn")]
        yield f"  {count(one['absent'])} {named}: {parts[0]} recalled by the model, {parts[1]} drawn"
    if bill := recalls["usd"]:
        real, drawn = recalls["recalled_usd"], recalls["drawn_usd"]
        way = "lower" if real <= drawn else "higher"
        yield (
            f"  the recalls cost about {dollars(real)} ({_points(real, bill)} of {dollars(bill)}), the drawn ones would cost {dollars(drawn)} "
            f"({_points(drawn, bill)}): with recalls as in this store, a replay's bill would be {_points(abs(real - drawn), bill)} {way}"
        )


def _points(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %"


def _moment(at: float | None) -> str:
    return "-" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
