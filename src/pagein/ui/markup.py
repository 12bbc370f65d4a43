"""The fixed parts of the page: verdict, tiles and tables as HTML, all foreign text escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from pagein.model.bill import Bill, Doctor, Figures, SessionBill
from pagein.ui.columns import (
    BY_DEFAULT,
    COST,
    DEEDS,
    ENGINE,
    OPTIMUM,
    POLICY_MEANINGS,
    BillColumn,
    BillRow,
    columns_for,
    did_something,
    policy_meaning,
    quotient,
    rows,
    sum_columns,
)
from pagein.ui.figures import amount, change, count, dollars, error, plain, plural, rate, share, short
from pagein.ui.verdict import Verdict

# Bars reach this far beyond the baseline; longer bars are cut off.
_BAR_REACH = 1.6


def text(value: str) -> str:
    """Return foreign words as HTML text."""
    return escape(plain(value))


def hero(said: Verdict) -> str:
    """Return the verdict: the main sentence large, the rest below it."""
    first, _, rest = said.headline.partition(". ")
    large, small = (rest, f"{first}.") if rest else (said.headline, "")
    return (
        f"<p class='soft'>{text(small)}</p><h1><em>{text(large)}</em></h1>"
        f"<p>{text(said.loss)}</p><p>{text(said.rival)}</p><p class='soft'>{text(said.floor)}</p>"
        f"<p>{text(said.doubt)}</p>"
    )


def tiles(bill: Bill) -> str:
    """Return the key figures, the gateway's default policy first."""
    base = bill["policies"].get(bill["baseline"])
    if base is None:
        return ""
    found = [_cost_tile(base, bill["baseline"])]
    ours = [name for name in (BY_DEFAULT, ENGINE) if name in bill["policies"]]
    for place, name in enumerate(ours):
        row = BillRow(name, bill["policies"][name], base, bill["policies"].get(OPTIMUM))
        found += _more_tiles(row) if place else _engine_tiles(row)
    found.append((share(base["floor_tokens"], base["prompt_tokens"]), "of the prompt is floor"))
    items = "".join(f"<li><b>{text(value)}</b><span>{text(label)}</span></li>" for value, label in found)
    return f"<ul class='tiles'>{items}</ul>"


def _cost_tile(figures: Figures, name: str) -> tuple[str, str]:
    usd = "" if figures["usd"] is None else f" ({dollars(figures['usd'])})"
    return amount(figures["cost"]), f"BIT{usd}, {name}"


def _engine_tiles(row: BillRow) -> list[tuple[str, str]]:
    figures = row.figures
    return [
        _cost_tile(figures, row.name),
        (change(row.ratio), "against the baseline"),
        (rate(row.faults_per_hundred), "faults per 100 calls"),
        (f"{count(figures['quotes_lost'])} of {count(figures['quotes_total'])}", "edit quotes lost from sight"),
        (count(figures["unrecoverable_bytes"]), "bytes lost"),
    ]


def _more_tiles(row: BillRow) -> list[tuple[str, str]]:
    """Return the cost of the policy with keep-alive requests, which the user has to enable."""
    return [_cost_tile(row.figures, f"{row.name}, with --keep-alive"), (change(row.ratio), "with --keep-alive")]


def cost_table(bill: Bill, policies: Mapping[str, Figures], caption: str, *, whole: bool) -> str:
    """Return the costs with a bar per policy. whole: the summary table, with the macro column and the meanings of
    policies.
    """
    listed = rows(policies, bill["baseline"])
    columns = columns_for(sum_columns(bill) if whole else COST, listed)
    head = [
        *_heads(columns[:1]),
        "<th scope='col'><span class='unseen'>cost as a bar</span></th>",
        *_heads(columns[1:]),
    ]
    body = []
    for row in listed:
        meaning = f"<small>{text(policy_meaning(row.name))}</small>" if whole else ""
        cells = "".join(f"<td>{text(column.cell(row))}</td>" for column in columns[1:])
        name = f"<th scope='row'>{text(row.name)}{meaning}</th>"
        body.append(f"<tr{_class(row, bill)}>{name}<td>{_bar(row)}</td>{cells}</tr>")
    return frame(caption, head, body)


def deeds_html(bill: Bill) -> str:
    """Return the table of each policy's actions on the window."""
    body = []
    listed = did_something(rows(bill["policies"], bill["baseline"]))
    columns = columns_for(DEEDS, listed)
    for row in listed:
        cells = "".join(f"<td>{text(column.cell(row))}</td>" for column in columns[1:])
        body.append(f"<tr{_class(row, bill)}><th scope='row'>{text(row.name)}</th>{cells}</tr>")
    return frame("Only policies that act on the window.", _heads(columns), body) if body else ""


def session_table(bill: Bill, shown: Mapping[tuple[str, str], int]) -> str:
    """Return one row per session; sessions with pictures (`shown`: file and id to number) link to them."""
    titles = (
        "session",
        "source",
        "agent",
        "calls",
        "cost (BIT)",
        BY_DEFAULT,
        ENGINE,
        OPTIMUM,
        "stubs",
        "faults/100",
        "flags",
    )
    body = [
        _session(session, bill["baseline"], shown.get((session["file"], session["id"])))
        for session in bill["per_session"]
    ]
    return frame(plural(len(body), "session"), (f"<th scope='col'>{title}</th>" for title in titles), body)


def _session(session: SessionBill, baseline: str, number: int | None) -> str:
    found = {row.name: row for row in rows(session["policies"], baseline)}
    base, quiet, engine, optimum = (found.get(name) for name in (baseline, BY_DEFAULT, ENGINE, OPTIMUM))
    ours = quiet or engine
    name = text(short(session["id"] or session["file"]))
    linked = f"<a href='#session-{number}'>{name}</a>" if number else name
    cells = (
        count(base.figures["calls"]) if base else "-",
        amount(base.figures["cost"]) if base else "-",
        change(quiet.ratio) if quiet else "-",
        change(engine.ratio) if engine else "-",
        change(optimum.ratio) if optimum else "-",
        count(ours.figures["stubs"]) if ours else "-",
        rate(ours.faults_per_hundred) if ours else "-",
    )
    flags = ", ".join(key if value is True else f"{key}: {value}" for key, value in session["flags"].items() if value)
    below = " <small>sub-agent</small>" if session["parent"] else ""
    return (
        f"<tr><th scope='row'>{linked}{below}</th><td class='text'>{text(short(session['source']))}</td>"
        f"<td class='text'>{text(short(session['agent']))}</td>{''.join(f'<td>{text(cell)}</td>' for cell in cells)}"
        f"<td class='text'>{text(flags)}</td></tr>"
    )


def prediction_table(bill: Bill) -> str:
    """Return the errors of the simulator against the provider's own usage."""
    titles = ("source", "calls", "read", "written", "read, misses unknown", "written, misses unknown")
    body = []
    for source, found in bill["prediction"].items():
        errors = (found["read_error"], found["written_error"], found["pure_read_error"], found["pure_written_error"])
        cells = "".join(f"<td>{text(cell)}</td>" for cell in (count(found["calls"]), *map(error, errors)))
        body.append(f"<tr><th scope='row'>{text(short(source))}</th>{cells}</tr>")
    return frame("", (f"<th scope='col'>{title}</th>" for title in titles), body)


def doctor_table(found: Doctor) -> str:
    """Return the misses of the provider's own cache in the recordings, by source and cause."""
    titles = ("source", "why", "calls", "tokens", "BIT", "of the bill")
    body = [
        f"<tr><th scope='row'>{text('' if number else short(source))}</th>"
        f"<td class='text'>{text(one['cause'])}<small>{text(one['words'])}</small></td><td>{count(one['calls'])}</td>"
        f"<td>{amount(one['missed'])}</td><td>{amount(one['cost'])}</td><td>{100 * one['share']:.1f} %</td></tr>"
        for source, checkup in found["sources"].items()
        for number, one in enumerate(checkup["ailments"])
    ]
    return frame("", (f"<th scope='col'>{title}</th>" for title in titles), body) if body else ""


def skipped_html(bill: Bill) -> str:
    """Return the files not replayed, with the reasons."""
    body = (
        f"<tr><td class='text'>{text(skip['file'])}</td><td class='text'>{text(skip['reason'])}</td></tr>"
        for skip in bill["skipped"]
    )
    return frame("", (f"<th scope='col' class='text'>{title}</th>" for title in ("file", "reason")), body)


def words(columns: Iterable[BillColumn]) -> str:
    """Return the meanings of the policies and of the columns."""
    meanings = [*POLICY_MEANINGS.items(), *((column.title, column.meaning) for column in columns)]
    return "".join(f"<dt>{text(word)}</dt><dd>{text(meaning)}</dd>" for word, meaning in meanings)


def frame(caption: str, head: Iterable[str], body: Iterable[str]) -> str:
    """Return a table with its own scroll bar, for tables wider than the page."""
    said = f"<caption>{text(caption)}</caption>" if caption else ""
    label = escape(caption or "table", quote=True)
    return (
        f"<div class='scroll' tabindex='0' role='region' aria-label='{label}'><table>{said}"
        f"<thead><tr>{''.join(head)}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _heads(columns: Sequence[BillColumn]) -> list[str]:
    return [
        f"<th scope='col' title='{escape(column.meaning, quote=True)}'>{text(column.title)}</th>" for column in columns
    ]


def _class(row: BillRow, bill: Bill) -> str:
    ours = BY_DEFAULT if BY_DEFAULT in bill["policies"] else ENGINE
    return " class='engine'" if row.name == ours else " class='baseline'" if row.name == bill["baseline"] else ""


def _bar(row: BillRow) -> str:
    ratio = quotient(row.figures["cost"], row.baseline["cost"] if row.baseline else None)
    if ratio is None:
        return ""
    return f"<div class='bar' aria-hidden='true' data-share='{ratio / _BAR_REACH:.4f}' data-line='{1 / _BAR_REACH:.4f}'></div>"
