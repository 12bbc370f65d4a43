"""The fixed parts of the page: verdict, tiles and tables as HTML, all foreign text escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from pagein.model.bill import Bill, Doctor, Figures, SessionBill, Spread
from pagein.ui.billed_sessions import began_words, name_of, project_of
from pagein.ui.columns import (
    BY_DEFAULT,
    COST,
    DEEDS,
    ENGINE,
    OPTIMUM,
    POLICY_LABELS,
    POLICY_MEANINGS,
    BillColumn,
    BillRow,
    columns_for,
    did_something,
    policy_meaning,
    rows,
    sum_columns,
)
from pagein.ui.figures import ABSENT, amount, change, count, error, plain, plural, rate, share, short
from pagein.ui.verdict import RECORDED, Verdict, money

# Bars reach this far beyond the baseline; longer bars are cut off.
_BAR_REACH = 1.6
_MORE = " class='more'"
_SWITCH = "<label class='columns'><input type='checkbox'> all columns</label>"
# Columns up to this rank are on a narrow page, too.
_KEPT = 0


def text(value: str) -> str:
    """Return foreign words as HTML text."""
    return escape(plain(value))


def hero(said: Verdict) -> str:
    """Return the verdict: the main sentence large, the rest below it."""
    first, _, rest = said.headline.partition(". ")
    large, small = (rest, f"{first}.") if rest else (said.headline, "")
    return (
        f"<p class='soft'>{text(small)}</p><h1><em>{text(large)}</em></h1>"
        f"{_paragraphs((said.spread, said.loss, said.host, said.rival), '')}{_paragraphs((said.floor,), ' class=soft')}"
        f"{_paragraphs((said.doubt,), '')}"
    )


def _paragraphs(some: Iterable[str], attributes: str) -> str:
    return "".join(f"<p{attributes}>{text(one)}</p>" for one in some if one)


def tiles(bill: Bill) -> str:
    """Return the key figures, the gateway's default policy first."""
    base = bill["policies"].get(bill["baseline"])
    if base is None:
        return ""
    found = [(money(base), f"{'as recorded, ' if bill['baseline'] == RECORDED else ''}{bill['baseline']}")]
    ours = [name for name in (BY_DEFAULT, ENGINE) if name in bill["policies"]]
    if len(ours) > 1 and not bill["policies"][ENGINE]["keep_alives"]:
        ours.remove(ENGINE)  # without a keep-alive request both are the same
    for place, name in enumerate(ours):
        row = BillRow(name, bill["policies"][name], base, bill["policies"].get(OPTIMUM))
        found += _more_tiles(row) if place else _engine_tiles(row, bill["spread"].get(name))
    found.append((share(base["floor_tokens"], base["prompt_tokens"]), "of the prompt: system and tools"))
    items = "".join(f"<li><b>{text(value)}</b><span>{text(label)}</span></li>" for value, label in found)
    return f"<ul class='tiles'>{items}</ul>"


def _engine_tiles(row: BillRow, spread: Spread | None) -> list[tuple[str, str]]:
    figures = row.figures
    one = [(change(spread["median"]), "median session")] if spread is not None and spread["sessions"] > 1 else []
    return [
        (money(figures), f"with {row.name}"),
        (change(row.ratio), "against the baseline"),
        *one,
        (rate(row.faults_per_hundred), "needed again, per 100 calls"),
        (f"{count(figures['quotes_lost'])} of {count(figures['quotes_total'])}", "edit quotes lost from sight"),
        (count(figures["unrecoverable_bytes"]), "bytes lost"),
    ]


def _more_tiles(row: BillRow) -> list[tuple[str, str]]:
    """Return the cost of the policy with keep-alive requests, which the user has to enable."""
    return [(money(row.figures), f"{row.name}, with --keep-alive"), (change(row.ratio), "with --keep-alive")]


def cost_table(bill: Bill, policies: Mapping[str, Figures], caption: str, *, whole: bool) -> str:
    """Return the costs with a bar per policy. whole: the summary table, with the macro column and the meanings of
    policies.
    """
    listed = rows(policies, bill["baseline"])
    columns = [one for one in columns_for(sum_columns(bill) if whole else COST, listed) if one.title != "that is"]
    head = [
        *_heads(columns[:1]),
        "<th scope='col'><span class='unseen'>cost as a bar</span></th>",
        *_heads(columns[1:]),
    ]
    body = []
    for row in listed:
        meaning = (
            f"<small class='brief'>{text(POLICY_LABELS.get(row.name, ''))}</small><small class='more'>{text(policy_meaning(row.name))}</small>"
            if whole
            else ""
        )
        cells = "".join(f"<td{_more(column)}>{text(column.cell(row))}</td>" for column in columns[1:])
        name = f"<th scope='row'>{text(row.name)}{meaning}</th>"
        body.append(f"<tr{_class(row, bill)}>{name}<td>{_bar(row)}</td>{cells}</tr>")
    return frame(caption, head, body)


def deeds_html(bill: Bill) -> str:
    """Return the table of each policy's actions on the window."""
    body = []
    listed = did_something(rows(bill["policies"], bill["baseline"]))
    columns = columns_for(DEEDS, listed)
    for row in listed:
        cells = "".join(f"<td{_more(column)}>{text(column.cell(row))}</td>" for column in columns[1:])
        body.append(f"<tr{_class(row, bill)}><th scope='row'>{text(row.name)}</th>{cells}</tr>")
    return frame("Only policies that act on the window.", _heads(columns), body) if body else ""


def session_table(bill: Bill, shown: Mapping[tuple[str, str], int], some: Sequence[SessionBill] | None = None) -> str:
    """Return one row per session; sessions with pictures (`shown`: file and id to number) link to them.

    some: only these sessions.
    """
    listed = bill["per_session"] if some is None else some
    head = [
        "<th scope='col'>session</th>",
        *(f"<th scope='col'{'' if title in _ALWAYS else _MORE}>{title}</th>" for title in _SESSION_TITLES),
        "<th scope='col' class='text more'>notes</th>",
    ]
    body = [_session(one, bill["baseline"], shown.get((one["file"], one["id"]))) for one in listed]
    return frame(plural(len(body), "session"), head, body)


_SESSION_TITLES = ("calls", "cost", BY_DEFAULT, ENGINE, OPTIMUM, "left", "needed/100")
_ALWAYS = ("cost", BY_DEFAULT)


def _session(session: SessionBill, baseline: str, number: int | None) -> str:
    found = {row.name: row for row in rows(session["policies"], baseline)}
    base, quiet, engine, optimum = (found.get(name) for name in (baseline, BY_DEFAULT, ENGINE, OPTIMUM))
    ours = quiet or engine
    name = text(short(name_of(session)))
    linked = f"<a href='#session-{number}'>{name}</a>" if number else name
    values = (
        count(base.figures["calls"]) if base else "-",
        money(base.figures) if base else "-",
        change(ours.ratio) if ours else "-",
        change(engine.ratio) if engine else "-",
        change(optimum.ratio) if optimum else "-",
        count(ours.figures["stubs"]) if ours else "-",
        rate(ours.faults_per_hundred) if ours else "-",
    )
    cells = "".join(
        f"<td{'' if title in _ALWAYS else _MORE}>{text(value)}</td>"
        for title, value in zip(_SESSION_TITLES, values, strict=True)
    )
    flags = ", ".join(key if value is True else f"{key}: {value}" for key, value in session["flags"].items() if value)
    agent = f"{short(session['agent'])}{', sub-agent' if session['parent'] else ''}"
    where = " &middot; ".join(text(one) for one in (project_of(session), began_words(session), agent) if one != ABSENT)
    return (
        f"<tr><th scope='row' class='named'>{linked}<small>{where}</small></th>{cells}"
        f"<td class='text more'>{text(flags)}</td></tr>"
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
    titles = ("source", "why", "calls", "tokens", "cost (BIT)", "of the bill")
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
    head = list(head)
    said = f"<caption>{text(caption)}</caption>" if caption else ""
    label = escape(caption or "table", quote=True)
    return (
        f"{_SWITCH if any('more' in one for one in head) else ''}"
        f"<div class='scroll' tabindex='0' role='region' aria-label='{label}'><table>{said}"
        f"<thead><tr>{''.join(head)}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _more(column: BillColumn) -> str:
    """Return the class of a column that a narrow page leaves out at first."""
    return _MORE if column.rank > _KEPT else ""


def _heads(columns: Sequence[BillColumn]) -> list[str]:
    return [
        f"<th scope='col'{_more(column)} title='{escape(column.meaning, quote=True)}'>{text(column.title)}</th>"
        for column in columns
    ]


def _class(row: BillRow, bill: Bill) -> str:
    ours = BY_DEFAULT if BY_DEFAULT in bill["policies"] else ENGINE
    return " class='engine'" if row.name == ours else " class='baseline'" if row.name == bill["baseline"] else ""


def _bar(row: BillRow) -> str:
    ratio = row.ratio
    if ratio is None:
        return ""
    return f"<div class='bar' aria-hidden='true' data-share='{ratio / _BAR_REACH:.4f}' data-line='{1 / _BAR_REACH:.4f}'></div>"
