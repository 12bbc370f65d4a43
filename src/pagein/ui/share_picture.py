"""An SVG picture of a bill for publication: costs with pagein and without. The picture has no word of a session."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from pagein.model.bill import Bill, Figures
from pagein.ui.columns import BY_DEFAULT, ENGINE, cost_ratio
from pagein.ui.figures import change, count, plural, short
from pagein.ui.verdict import money

WIDTH: Final = 1200
HEIGHT: Final = 630
"""Units of the picture: the size that most sites show a shared picture in."""
_LEFT: Final = 70
_LABELS: Final = 330
_LONGEST_BAR: Final = 560
_FIRST_BAR: Final = 250
_LINE: Final = 78
_LETTER: Final = 0.6
"""Width of a bold letter as a share of its size, with a wide font."""
_MODELS_NAMED: Final = 3
_COLOURS: Final = {"append": "#64605b", "compact": "#b58900", BY_DEFAULT: "#0a7d74", ENGINE: "#57b894"}
_NAMES: Final = {
    "append": "without pagein",
    "compact": "agent compacts itself",
    BY_DEFAULT: "with pagein",
    ENGINE: "with keep-alive requests",
}


def share_picture(bill: Bill) -> str:
    """Return the picture of a bill; "" for a bill without pagein or without its baseline."""
    base = bill["policies"].get(bill["baseline"])
    ours = BY_DEFAULT if BY_DEFAULT in bill["policies"] else ENGINE
    engine = bill["policies"].get(ours)
    if base is None or engine is None or bill["baseline"] == ours:
        return ""
    title = _title(bill, base, engine)
    return "\n".join((*_head(title), *_bars(bill, base), *_notes(bill, engine, ours), "</svg>", ""))


def _title(bill: Bill, base: Figures, engine: Figures) -> str:
    who = plural(bill["sessions"], "recorded agent session")
    told = change(cost_ratio(engine, base))
    if told.startswith("-"):
        return f"{who} would have cost {told[1:]} less with pagein"
    if told.startswith("+"):
        return f"{who} would have cost {told[1:]} more with pagein"
    return f"{who} would have cost the same with pagein"


def _head(title: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" '
        'font-family="system-ui, sans-serif" fill="#1c1b1a">'
    )
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fbfaf8"/>'
    yield f'<text x="{_LEFT}" y="90" font-size="28" font-weight="700" fill="#0a7d74">pagein</text>'
    yield f'<text x="{_LEFT}" y="160" font-size="{_title_size(title)}" font-weight="680">{escape(title)}</text>'


def _title_size(title: str) -> int:
    """Return the font size of the title. The title then ends inside the picture with every font."""
    return min(40, int((WIDTH - 2 * _LEFT) / (_LETTER * len(title))))


def _bars(bill: Bill, base: Figures) -> Iterator[str]:
    shown = [name for name in dict.fromkeys((bill["baseline"], *_NAMES)) if name in bill["policies"]]
    ratios = {name: cost_ratio(bill["policies"][name], base) or 0.0 for name in shown}
    if ENGINE in shown and BY_DEFAULT in shown and abs(ratios[ENGINE] - ratios[BY_DEFAULT]) < 1e-9:  # noqa: PLR2004 - equal
        shown.remove(ENGINE)
    longest = max(ratios.values(), default=1.0) or 1.0
    for place, name in enumerate(shown):
        y, width = _FIRST_BAR + _LINE * place, _LONGEST_BAR * ratios[name] / longest
        label = _NAMES.get(name, name)
        colour = _COLOURS.get(name, _COLOURS["append"])
        figure = f"{money(bill['policies'][name])}" + (f"  {change(ratios[name])}" if name != bill["baseline"] else "")
        yield f'<text x="{_LEFT}" y="{y + 27}" font-size="24">{escape(label)}</text>'
        yield f'<rect x="{_LEFT + _LABELS}" y="{y}" width="{width:.0f}" height="40" rx="5" fill="{colour}"/>'
        yield f'<text x="{_LEFT + _LABELS + width + 14:.0f}" y="{y + 28}" font-size="24" font-weight="600">{escape(figure)}</text>'


def _notes(bill: Bill, engine: Figures, ours: str) -> Iterator[str]:
    for place, line in enumerate(_lines(bill, engine, ours)):
        yield f'<text x="{_LEFT}" y="{540 + 28 * place}" font-size="19" fill="#64605b">{escape(line)}</text>'


def _lines(bill: Bill, engine: Figures, ours: str) -> Sequence[str]:
    spread = bill["spread"].get(ours)
    told = []
    if spread is not None and spread["sessions"] > 1:
        told.append(
            f"Median session {change(spread['median'])}; {count(spread['cheaper'])} cheaper, {count(spread['dearer'])} dearer; "
            f"{count(engine['unrecoverable_bytes'])} bytes lost."
        )
    return [*told, f"Prices: {_models(bill)}.", "Recordings, replayed: not what the model would have done differently."]


def _models(bill: Bill) -> str:
    names = [name for name, _ in Counter(one["prices"] for one in bill["per_session"]).most_common()]
    some = ", ".join(short(name, 24) for name in names[:_MODELS_NAMED])
    return f"{some} and others" if len(names) > _MODELS_NAMED else some
