"""Draw what a person sees of pagein in pi's terminal, as pictures for docs/hosts/pi.md: the widget, the overlay and a command's answer.

    python scripts/draw_pi_screens.py

Needs the agents (`make clients`) and tmux, in which a real pi runs with a simulated provider. Writes docs/images/pi-*.svg. Ids and
times differ from run to run, so nothing compares the pictures.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.agents import commands_folder  # found from the root of the repository
from tests.agents.pi_process import AGENT, PiPlace, put_extension, set_up

from pagein.simulator import SimulatedProvider

IMAGES: Final = Path(__file__).resolve().parents[1] / "docs" / "images"
COLUMNS, ROWS = 124, 40
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8, 17, 12
BACK, FRONT = "#1c1c1f", "#d8d8d8"
FOUND: Final = r'rlm_peek\(\\?"(pg-[0-9a-f-]+)'
REPORT: Final = "for n in range(400): print('row', n, 'of a long build log that nobody reads twice')\n"
TURNS: Final = (
    [{"tool": "bash", "args": {"command": "python3 build.py"}}],
    [{"capture": {"id": FOUND}}, {"tool": "rlm_peek", "args": {"id": "{{id}}", "offset": 0, "length": 90}}],
    [{"text": "The build is in order."}],
)


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture; without a name none.

    types: what the person types. shows: text that is on the screen then. first, last: patterns of the rows to draw.
    closes: key that the person presses after that.
    """

    name: str
    types: str
    shows: str
    first: str
    last: str
    closes: str = ""


SHOTS: Final = (
    Shot("pi-widget", f"Build it. SCRIPT:{json.dumps(TURNS)}", "1 preview, 1 object", r"\$ python3 build", r"^─"),
    Shot("pi-overlay", "/rlm inspect", "Escape closes", r"╭", r"╰", "Escape"),
    Shot("", "/rlm config maxChildCalls=20", "Set for this branch", "", ""),
    Shot("pi-config", "/rlm config", "retentionDays", r"^ *key +value", r"^ *retentionDays"),
)


class Screen:
    """A pi in a tmux of its own."""

    def __init__(self, place: PiPlace, address: str, tmux: str) -> None:
        environment = set_up(place, address) | {"TERM": "xterm-256color", "LANG": "C.UTF-8", "COLORTERM": "truecolor"}
        told = [f"{name}={value}" for name, value in environment.items()]
        pi = [str(place.commands / "pi"), "--model", f"simulated/{AGENT.model}"]
        self._tmux = (tmux, "-S", str(place.folder / "tmux"), "-f", "/dev/null")
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        self._run("new-session", "-d", *size, "-c", str(place.workspace), "env", "-i", *told, *pi)

    def type(self, words: str) -> None:
        """Type a line, and then Enter."""
        self._run("send-keys", "-l", words)
        time.sleep(1)
        self.press("Enter")

    def press(self, key: str) -> None:
        """Press a key. Waits, because an Escape and the next letter, read at once, mean another key."""
        self._run("send-keys", key)
        time.sleep(1)

    def rows(self) -> list[str]:
        """The rows of the screen, with their colours."""
        return self._run("capture-pane", "-p", "-e").splitlines()

    def wait(self, shown: str) -> list[str]:
        """Return the rows once a text is on the screen, and pi has drawn to the end. Raises AssertionError after a minute."""
        for _ in range(120):
            rows = self.rows()
            time.sleep(0.5)
            if shown in "\n".join(map(plain, rows)) and rows == self.rows():
                return rows
        raise AssertionError(f"pi never drew {shown!r}")

    def close(self) -> None:
        """End pi and its tmux."""
        self._run("kill-server")

    def _run(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], check=True, capture_output=True, text=True).stdout


def plain(row: str) -> str:
    """Return a row without its colours."""
    return Text.from_ansi(row).plain


def between(rows: Sequence[str], first: str, last: str) -> list[str]:
    """Return the rows from the last one that matches `first` to the next one that matches `last`, empty ones left out."""
    begin = max(place for place, row in enumerate(rows) if re.search(first, plain(row)))
    found = []
    for row in rows[begin:]:
        if plain(row).strip():
            found.append(row)
        if re.search(last, plain(row)):
            break
    return found


def picture(rows: Sequence[str]) -> str:
    """Return rows of a terminal as SVG."""
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, len(rows) * CELL_HEIGHT + 2 * MARGIN
    font = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="{font}" font-size="13">',
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACK}"/>',
    ]
    for number, row in enumerate(rows):
        lines += _cells(row, MARGIN + number * CELL_HEIGHT)
    return "\n".join([*lines, "</svg>\n"])


def _cells(row: str, top: int) -> Iterator[str]:
    """Yield the elements of a row. Each text has its own place and length, so that columns stand under one another in any font."""
    console, at = Console(width=COLUMNS), MARGIN
    for words, given, _ in Segment.simplify(Text.from_ansi(row).render(console, end="")):
        length, style = len(words) * CELL_WIDTH, given or Style()
        front, back = _colour(style, front=True), _colour(style, front=False)
        if back:
            yield f'<rect x="{at}" y="{top}" width="{length}" height="{CELL_HEIGHT}" fill="{back}"/>'
        if words.strip():
            weight = ' font-weight="bold"' if style.bold else ""
            yield (
                f'<text x="{at}" y="{top + 13}" fill="{front or FRONT}"{weight} textLength="{length}" '
                f'xml:space="preserve">{escape(words)}</text>'
            )
        at += length


def _colour(style: Style, *, front: bool) -> str:
    colour = style.color if front else style.bgcolor
    return "" if colour is None or colour.is_default else colour.get_truecolor(MONOKAI).hex


def main() -> int:
    """Draw all pictures. Returns the exit status."""
    commands, tmux = commands_folder(), shutil.which("tmux")
    if commands is None or tmux is None:
        print("this needs the agents (make clients) and tmux", file=sys.stderr)
        return 2
    with TemporaryDirectory(prefix="pagein-screens-") as name, SimulatedProvider() as provider:
        place = PiPlace(Path(name), commands, settings={"PAGEIN_PI_PAGING": "true"})
        place.workspace.mkdir()
        (place.workspace / "build.py").write_text(REPORT, encoding="utf-8")
        put_extension(place)
        screen = Screen(place, provider.url, tmux)
        try:
            screen.wait(AGENT.model)
            for shot in SHOTS:
                screen.type(shot.types)
                rows = screen.wait(shot.shows)
                if shot.name:
                    file = IMAGES / f"{shot.name}.svg"
                    file.write_text(picture(between(rows, shot.first, shot.last)), encoding="utf-8")
                    print(f"wrote {file.name}")
                if shot.closes:
                    screen.press(shot.closes)
        finally:
            screen.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
