"""Show the demo session: replay it, draw docs/images/demo.svg and docs/images/bill.svg, and write the tables between the marks of examples/README.md.

`--check` writes nothing and fails where the page or the picture is not what a replay gives today.
"""

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from rich.console import Console

from pagein.model.bill import Bill, Detail
from pagein.replay.run import OWN, ReplayRequest, replay
from pagein.ui.columns import ENGINE
from pagein.ui.figures import change
from pagein.ui.share_picture import share_picture
from pagein.ui.tables import TableOptions, show
from pagein.ui.verdict import money
from pagein.wiring import open as open_engine

ROOT = Path(__file__).resolve().parents[1]
SESSION = ROOT / "examples" / "demo-session.jsonl.gz"
PICTURE = ROOT / "docs" / "images" / "demo.svg"
SHARED = ROOT / "docs" / "images" / "bill.svg"
PAGE = ROOT / "examples" / "README.md"
BEGIN, END = "<!-- demo: written by scripts/show_demo.py -->\n", "<!-- /demo -->"

WIDTH, HEIGHT, LEFT, TOP, GAP, PLOT_WIDTH, PLOT_HEIGHT = 880, 312, 56, 74, 56, 376, 208
# What is stacked, from the bottom: name on the picture, colour in light and in dark, kinds of the composition.
LAYERS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("system and tools", "#b9b4ad", "#6a6762", ("floor",)),
    ("conversation", "#9a6dd7", "#a98be0", ("hidden", "user", "assistant")),
    ("tool arguments", "#d6589a", "#d975a8", ("arguments",)),
    ("stubs and recalls", "#0a7d74", "#3dc2b4", ("stubs", "recalled")),
    ("tool results", "#3b82c4", "#5a9bd8", ("results",)),
)


def main() -> int:
    """Replay the demo session and write what it shows, or with --check compare. Returns the exit status."""
    replayed = replay(ReplayRequest(paths=(SESSION,), prices=OWN, detail=True), open_engine)
    drawn = picture(replayed.bill, replayed.details[0])
    told = with_tables(PAGE.read_text(encoding="utf-8"), tables(replayed.bill))
    made = {PICTURE: drawn, SHARED: share_picture(replayed.bill), PAGE: told}
    stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale; run: .venv/bin/python scripts/show_demo.py")
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def tables(bill: Bill) -> str:
    """What the terminal shows, as a block for the page."""
    out = io.StringIO()
    console = Console(file=out, width=112, highlight=False, markup=False, emoji=False, color_system=None)
    show(console, bill, TableOptions())
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join(("```text", "$ make demo", *lines, "```", ""))


def with_tables(page: str, block: str) -> str:
    """The page with another block between its marks."""
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise SystemExit(f"examples/README.md has lost its marks {BEGIN.strip()} and {END}")
    return before + BEGIN + block + END + after


def picture(bill: Bill, detail: Detail) -> str:
    """The prompt of the session call by call, without pagein and with it, as an SVG that follows the reader's colours."""
    names = (bill["baseline"], ENGINE)
    top = max(max(_sums(detail["composition"][name]["tokens"])) for name in names)
    parts = [_head(), _title(bill), *_keys()]
    for number, name in enumerate(names):
        left = LEFT + number * (PLOT_WIDTH + GAP)
        marks = [epoch["call"] for epoch in detail["epochs"]] if name == ENGINE else []
        parts += _panel(left, top, detail["composition"][name]["tokens"], _caption(bill, name), marks)
    return "\n".join((*parts, "</svg>", ""))


def _sums(tokens: Mapping[str, Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*tokens.values(), strict=True)]


def _head() -> str:
    light = "".join(f".l{number}{{fill:{layer[1]}}}" for number, layer in enumerate(LAYERS))
    dark = "".join(f".l{number}{{fill:{layer[2]}}}" for number, layer in enumerate(LAYERS))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="The prompt of the scripted demo session, call by call, without pagein and with it">\n'
        "<style>text{font:12px system-ui,sans-serif;fill:#1c1b1a}.s{fill:#64605b}.b{font-size:16px;font-weight:650}"
        f".h{{font-weight:600;font-size:13px}}.g{{stroke:#e4e0da}}.e{{stroke:#0a7d74;stroke-dasharray:5 3}}{light}"
        "@media(prefers-color-scheme:dark){text{fill:#e9e6e1}.s{fill:#a09b94}.g{stroke:#3a3e43}.e{stroke:#3dc2b4}"
        f"{dark}}}</style>"
    )


def _title(bill: Bill) -> str:
    base, engine = bill["policies"][bill["baseline"]], bill["policies"][ENGINE]
    changed = change(engine["cost"] / base["cost"])
    told = (
        f"{changed[1:]} less" if changed.startswith("-") else f"{changed[1:]} more" if changed[0] == "+" else "the same"
    )
    said = f"The scripted demo session costs {told} with pagein, and {engine['unrecoverable_bytes']} bytes are lost"
    return f'<text class="b" x="{LEFT}" y="24">{escape(said)}</text>'


def _keys() -> Iterator[str]:
    left = float(LEFT)
    for number, (label, *_) in enumerate(LAYERS):
        yield f'<rect class="l{number}" x="{left:.0f}" y="36" width="10" height="10" rx="2"/>'
        yield f'<text class="s" x="{left + 15:.0f}" y="45">{escape(label)}</text>'
        left += 32 + 6.2 * len(label)
    yield f'<path class="e" d="M{left + 4:.0f} 35v12" fill="none"/><text class="s" x="{left + 12:.0f}" y="45">epoch</text>'


def _caption(bill: Bill, name: str) -> str:
    label = f"with {ENGINE}" if name == ENGINE else f"as recorded ({name})"
    return f"{label}: {money(bill['policies'][name])}"


def _panel(
    left: int, top: int, tokens: Mapping[str, Sequence[int]], caption: str, marks: Sequence[int]
) -> Iterator[str]:
    calls = len(tokens["floor"])
    yield f'<text class="h" x="{left}" y="{TOP - 8}">{escape(caption)}</text>'
    for value in _ticks(top):
        y = _y(value, top)
        yield f'<path class="g" d="M{left} {y}h{PLOT_WIDTH}" fill="none"/>'
        yield f'<text class="s" x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{tick(value)}</text>'
    under = [0] * calls
    for number, (*_, kinds) in enumerate(LAYERS):
        over = [below + sum(tokens[kind][call] for kind in kinds) for call, below in enumerate(under)]
        yield f'<path class="l{number}" d="{_area(left, under, over, top)}"/>'
        under = over
    for call in marks:
        yield f'<path class="e" d="M{_x(left, call, calls)} {TOP}v{PLOT_HEIGHT}" fill="none" stroke-width="1.5"/>'
    bottom = TOP + PLOT_HEIGHT + 18
    yield f'<text class="s" x="{left}" y="{bottom}">call 1</text>'
    yield f'<text class="s" x="{left + PLOT_WIDTH}" y="{bottom}" text-anchor="end">call {calls}</text>'
    yield f'<text class="s" x="{left + PLOT_WIDTH // 2}" y="{bottom}" text-anchor="middle">tokens in the prompt</text>'


def _area(left: int, under: Sequence[int], over: Sequence[int], top: int) -> str:
    """A step per call along the upper edge, and back along the lower one."""
    calls = len(over)
    there = (f"V{_y(value, top)}H{_x(left, call + 1, calls)}" for call, value in enumerate(over))
    back = (f"V{_y(under[call], top)}H{_x(left, call, calls)}" for call in range(calls - 1, -1, -1))
    return "".join((f"M{_x(left, 0, calls)} {_y(over[0], top)}", *there, *back, "Z"))


def _x(left: int, call: int, calls: int) -> str:
    return f"{left + PLOT_WIDTH * call / max(calls, 1):.1f}"


def _y(value: float, top: int) -> float:
    return round(TOP + PLOT_HEIGHT * (1 - value / max(top, 1)), 1)


def tick(value: int) -> str:
    """A round number of tokens at its grid line."""
    return f"{value // 1000}k" if value else "0"


def _ticks(top: int) -> list[int]:
    step = next((size for size in (10_000, 25_000, 50_000, 100_000, 250_000) if top / size <= 5), 500_000)  # noqa: PLR2004 - lines
    return list(range(0, top + 1, step))


if __name__ == "__main__":
    sys.exit(main())
