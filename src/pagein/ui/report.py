"""The report: one HTML file without network access that opens from disk and shows a session call by call.

Session text is hostile. It enters the page escaped, or as JSON without any `<`, and reaches the document only as text
nodes; a content security policy names the page's own script and style by hash, so the browser runs and loads nothing
else.
"""

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from pagein.errors import BadSetting
from pagein.model.bill import Bill, CacheTrace, Detail, SessionBill
from pagein.ui import markup
from pagein.ui.billed_sessions import losers, prices_words
from pagein.ui.columns import BY_DEFAULT, COST, DEEDS, ENGINE
from pagein.ui.figures import plain, plural, short
from pagein.ui.share_picture import share_picture
from pagein.ui.verdict import verdict

# Maximum number of sessions with pictures, dearest first, and bytes of their data: a browser opens this without delay.
EMBEDDED = 20
_LOSERS = 10
_EMBEDDED_BYTES = 12_000_000
_STYLES = ("vendor/uplot/uPlot.min.css", "page/report.css")
_SCRIPTS = ("vendor/uplot/uPlot.iife.min.js", "page/charts.js", "page/report.js")


def write_report(path: Path, bill: Bill, details: Sequence[Detail]) -> None:
    """Write the page to `path`, whole or not at all. Raises BadSetting for an unwritable path."""
    write_whole(path, page(bill, details), "--html")


def write_whole(path: Path, written: str, option: str) -> None:
    """Write a file whole or not at all; a pipe or a device is written to, never replaced.

    option: the option that named the path. Raises BadSetting for an unwritable path.
    """
    text = written.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(text)
            return
        target = path.resolve()  # a link stays a link
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".part")
    except (OSError, RuntimeError) as error:
        raise BadSetting(f"{option} {path}: cannot write there: {_why(error)}") from error
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
        part.chmod(0o600)  # it holds pieces of a private session
        part.replace(target)
    except OSError as error:
        raise BadSetting(f"{option} {path}: cannot write it: {_why(error)}") from error
    finally:
        part.unlink(missing_ok=True)


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def page(bill: Bill, details: Sequence[Detail]) -> str:
    """Return the whole page as text."""
    style, script = _join_names(_STYLES, "\n"), _join_names(_SCRIPTS, ";\n")
    shown = largest(details, bill["baseline"])
    said = verdict(bill)
    parts = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">',
        "<meta name='viewport' content='width=device-width, initial-scale=1'><title>pagein replay</title>",
        f"<style>{style}</style></head><body class='{said.tone}'>",
        f"<header><div class='mark'>pagein replay</div>{markup.hero(said)}{markup.tiles(bill)}</header><main>",
        _costs(bill),
        _picture(bill),
        _session(shown, len(details)) if shown else "",
        _tables(bill, shown),
        f"</main>{_footer(bill)}<div id='spoken' class='unseen' aria-live='polite'></div>",
        f"<script type='application/json' id='facts'>{_facts(bill, shown)}</script><script>{script}</script></body></html>\n",
    )
    return "".join(parts)


def largest(details: Sequence[Detail], baseline: str) -> list[Detail]:
    """Return the sessions with embedded pictures: the dearest under the baseline, up to the size limit of a page."""
    ranked = sorted(details, key=lambda detail: -_total(detail, baseline))[:EMBEDDED]
    kept: list[Detail] = []
    room = _EMBEDDED_BYTES
    for detail in ranked:
        room -= len(_json(_slim(detail)))
        if room < 0 and kept:
            break
        kept.append(detail)
    return kept


def _total(detail: Detail, baseline: str) -> float:
    trace = detail["traces"].get(baseline)
    return sum(trace["cost"]) if trace else 0.0


def _join_names(names: Sequence[str], between: str) -> str:
    folder = files("pagein.ui")
    return between.join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def _policy(style: str, script: str) -> str:
    def digest_of(content: str) -> str:
        return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

    return (
        f"default-src 'none'; img-src data:; script-src 'sha256-{digest_of(script)}'; style-src 'sha256-{digest_of(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _facts(bill: Bill, shown: Sequence[Detail]) -> str:
    rates = {(one["file"], one["id"]): _rate(one, bill["baseline"]) for one in bill["per_session"]}
    data = {
        "baseline": bill["baseline"],
        "engine": ENGINE,
        "by_default": BY_DEFAULT,
        "sessions": [_slim(detail) | {"usd_per_bit": rates.get((detail["file"], detail["id"]))} for detail in shown],
    }
    return _json(data)


def _rate(session: SessionBill, baseline: str) -> float | None:
    """Return the dollars of a BIT in a session; None if its prices have no currency."""
    base = session["policies"].get(baseline)
    return base["usd"] / base["cost"] if base is not None and base["usd"] and base["cost"] else None


def _json(data: object) -> str:
    """Return JSON safe inside an HTML element: no text in it can end the element."""
    made = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return made.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _slim(detail: Detail) -> dict[str, object]:
    """Return a detail without digits too small for a picture."""
    traces = {name: _whole(trace) for name, trace in detail["traces"].items()}
    residents = [{**resident, "label": plain(resident["label"])} for resident in detail["residents"]]
    return {**detail, "times": [round(time, 1) for time in detail["times"]], "traces": traces, "residents": residents}


def _whole(trace: CacheTrace) -> dict[str, list[int]]:
    return {
        "read": trace["read"],
        "written": trace["written"],
        "fresh": trace["fresh"],
        "cost": [round(cost) for cost in trace["cost"]],
    }


def _costs(bill: Bill) -> str:
    unit = "" if _in_dollars(bill) else " A BIT is the price of one input token without a cache."
    note = f"Prices: {prices_words(bill)}.{unit} The dashed line is {bill['baseline']}."
    table = markup.cost_table(bill, bill["policies"], "Cost by policy", whole=True)
    return f"<h2>What each policy costs</h2><p class='note'>{markup.text(note)}</p><div class='card'>{table}</div>"


def _in_dollars(bill: Bill) -> bool:
    return any(figures["usd"] is not None for figures in bill["policies"].values())


def _picture(bill: Bill) -> str:
    drawn = share_picture(bill)
    if not drawn:
        return ""
    return (
        "<h2>A picture to share</h2><p class='note'>No word of a session is in it, only the figures.</p>"
        f"<section class='card' id='share'>{drawn}<p><button type='button' id='save-svg'>Save as SVG</button> "
        "<button type='button' id='save-png'>Save as PNG</button></p></section>"
    )


def _session(shown: Sequence[Detail], of: int) -> str:
    left = f"The pictures are those of the {len(shown)} dearest of {of} sessions." if len(shown) < of else ""
    heading = "One session, call by call" if of > 1 else "The session, call by call"
    return (
        f"<h2 id='one'>{heading}</h2>{_picker(shown, left, hidden=of == 1)}<ul class='facts' id='session-facts'></ul>"
        + _pair(
            "composition", "What the prompt consists of", "One step per model call. Drag to zoom, double-click for all."
        )
        + "<section class='card'><header><h3>What it has cost so far</h3>"
        "<p class='note'>Cumulative, recalls included. Expensive policies appear by their buttons.</p></header>"
        "<ul class='keys' id='costs-keys'></ul><div class='plot tall' id='costs0'></div></section>"
        + _pair(
            "cache",
            "What the cache did",
            "What was read is cheap, what was written is not. Peaks of pagein are recalls and keep-alive requests.",
        )
        + "<section class='card'><header><h3>Largest residents</h3><p class='note'>Tokens carried through the calls under "
        "append-only: size times the calls it stayed.</p></header><ol class='residents' id='residents'></ol></section>"
        "<section class='card'><header><h3>Epochs</h3><p class='note'>What left, why then, and what it had saved by the end of the session, "
        "recalls included.</p></header><div class='scroll' tabindex='0' role='region' aria-label='Epochs' "
        "id='epochs'></div><details id='numbers'><summary>The numbers of every call, as a table</summary>"
        "<div class='scroll' tabindex='0' role='region' aria-label='Every call' id='numbers-table'></div></details></section>"
    )


def _picker(shown: Sequence[Detail], left: str, *, hidden: bool) -> str:
    """Return the choice of a session; for a single session, its title instead."""
    options = "".join(f"<option value='{number}'>{_name(detail)}</option>" for number, detail in enumerate(shown))
    title = f"<p><b>{_name(shown[0])}</b></p>" if hidden else ""
    return (
        f"{title}<div class='picker'{' hidden' if hidden else ''}><label for='session'>Session</label>"
        f"<select id='session'>{options}</select><span class='note'>{left}</span></div>"
    )


def _pair(prefix: str, title: str, note: str) -> str:
    picker = "<label class='unseen' for='cache-policy'>Policy on the right</label><select id='cache-policy'></select>"
    second = picker if prefix == "cache" else f"<span id='{prefix}-name1'></span>"
    return (
        f"<section class='card' id='{prefix}'><header><h3>{title}</h3><p class='note'>{note}</p></header>"
        f"<ul class='keys' id='{prefix}-keys'></ul><div class='pair'>"
        f"<div><h4><span id='{prefix}-name0'></span></h4><div class='plot' id='{prefix}0'></div></div>"
        f"<div><h4>{second}</h4><div class='plot' id='{prefix}1'></div></div></div></section>"
    )


def _name(detail: Detail) -> str:
    return markup.text(f"{detail['title'] or detail['id']}  ({plural(len(detail['times']), 'call')})")


def _tables(bill: Bill, shown: Sequence[Detail]) -> str:
    made = [_card("What was done, and what it did", "", markup.deeds_html(bill))]
    if len(bill["groups"]) > 1:
        made += [
            _card(f"Cost: {short(source)}", "", markup.cost_table(bill, group["policies"], "", whole=False))
            for source, group in bill["groups"].items()
        ]
    numbers = {(detail["file"], detail["id"]): number for number, detail in enumerate(shown, start=1)}
    dearer = losers(bill, BY_DEFAULT if BY_DEFAULT in bill["policies"] else ENGINE)
    if dearer:
        note = f"The sum hides them: the {plural(len(dearer), 'session')} that would have cost more with pagein, the worst first."
        made.append(
            _card("Sessions that pagein makes dearer", note, markup.session_table(bill, numbers, dearer[:_LOSERS]))
        )
    made.append(_card("Sessions", "", markup.session_table(bill, numbers)))
    if bill["prediction"]:
        note = "Relative error of the simulated tokens. The last two columns do not know of the recorded cache misses."
        made.append(_card("The simulator against the provider's own usage", note, markup.prediction_table(bill)))
    if bill["doctor"] is not None:
        note = "Recorded calls that read less than the call before had left in the provider's cache; tokens paid again."
        made.append(_card("Cache doctor", note, markup.doctor_table(bill["doctor"])))
    if bill["skipped"]:
        made.append(_card(f"Skipped: {plural(len(bill['skipped']), 'file')}", "", markup.skipped_html(bill)))
    return "".join(made)


def _card(title: str, note: str, table: str) -> str:
    if not table:
        return ""
    return f"<h2>{markup.text(title)}</h2><p class='note'>{markup.text(note)}</p><div class='card'>{table}</div>"


def _footer(bill: Bill) -> str:
    from pagein import __version__

    words = markup.words((*COST, *DEEDS[1:]))
    return (
        f"<footer><details><summary>What the words mean</summary><dl class='words'>{words}</dl></details>"
        f"<p>Made by pagein {__version__} from {plural(bill['sessions'], 'recorded session')}. The recording is fixed: this shows "
        "what would have been cut, recalled and billed, not what the model would have done differently. "
        "Charts drawn with uPlot (MIT).</p></footer>"
    )
