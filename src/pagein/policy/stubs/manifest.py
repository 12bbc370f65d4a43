"""The manifest: a table of evicted objects, for the model to look them up in.

Rules of this file
------------------
1. A manifest is written when an epoch opens and at no other time, and a written page is never changed: each epoch adds
   a page of its evicted objects. So it costs no rewrite of its own.
2. A page is a function of the rows and of the way of recall: no clock, no place in the request.
3. Only after a compaction by the client is everything listed again, on one page: the earlier pages are gone with the
   window.
4. A page states its cost, so that the window's size includes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pagein.errors import BadSetting
from pagein.policy.stubs.descriptions import shorten_path
from pagein.policy.stubs.recall_ways import TOOLS, Way
from pagein.policy.stubs.result_stubs import one_line

BUDGET: Final = 2000
"""Maximum tokens of one page, by the count of `tokens_of`."""
RESERVE: Final = 200
"""Tokens of the budget for the text above and below the rows."""
_HEADER: Final = "## RLM External Context"
_COLUMNS: Final = "| Object ID | Type | Tokens | Description |\n|----|------|--------|-------------|"


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """An object in a manifest.

    tokens: the estimate in its stub. path: of the file that it shows; "" for no file.
    """

    object_id: str
    kind: str
    tokens: int
    description: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the manifest.

    tokens: its size in the window.
    """

    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """Totals of a branch's manifest so far.

    objects, tokens: of every listed object. pages: number of pages.
    """

    objects: int = 0
    tokens: int = 0
    pages: int = 0

    def at_edge(
        self, left: Sequence[ManifestRow], *, budget: int = BUDGET, way: Way = TOOLS
    ) -> tuple["Manifest", Page | None]:
        """Return the page for the objects evicted at this epoch, oldest first; None without objects.

        way: how the model recalls.

        Raises BadSetting for a budget below 1.
        """
        if not left:
            return self, None
        after = Manifest(self.objects + len(left), self.tokens + sum(row.tokens for row in left), self.pages + 1)
        return after, _page(left, after, budget, way)


NO_MANIFEST: Final = Manifest()


def tokens_of(text: str) -> int:
    """Return the tokens of a manifest's text for the budget: a quarter of the characters."""
    return -(-len(text) // 4)


def _page(rows: Sequence[ManifestRow], total: Manifest, budget: int, way: Way) -> Page:
    if budget < 1:
        raise BadSetting(f"a manifest needs a budget of 1 token or more, not {budget}")
    lines = _rows(rows, max(1, budget - RESERVE), way)
    text = "\n".join((*_above(total.pages, way), *lines, "", *_below(total, way)))
    return Page(text, tokens_of(text))


def _above(page: int, way: Way) -> tuple[str, ...]:
    if page > 1:
        return (f"{_HEADER} (page {page}, in addition to those before)", "", _COLUMNS)
    by = "commands" if way.is_command else "RLM tools"
    said = f"You have access to externalized content via {by}. The following objects\nare in your external store:"
    return (_HEADER, "", said, "", _COLUMNS)


def _below(total: Manifest, way: Way) -> tuple[str, ...]:
    return (
        f"**Total:** {total.objects:,} objects, {total.tokens:,} tokens externalized.",
        f"Use {way.words_of(way.search)} or {way.words_of(way.peek)} to access this content.",
    )


def _rows(rows: Sequence[ManifestRow], budget: int, way: Way) -> list[str]:
    """Return the newest rows within the budget, at least a single row; older rows become a summary line."""
    lines: list[str] = []
    used = 0
    for row in reversed(rows):
        line = _row(row)
        used += tokens_of(line + "\n")
        if lines and used > budget:
            break
        lines.append(line)
    older = rows[: len(rows) - len(lines)]
    if older:
        tokens = sum(row.tokens for row in older)
        remedy = f"Use {way.words_of(way.search)} or filters to narrow scope"
        lines.append(f"| **+{len(older):,} older** | objects | {tokens:,} | {remedy} |")
    return lines


def _row(row: ManifestRow) -> str:
    told = row.description if row.path in row.description else f"{shorten_path(row.path)}: {row.description}"
    cells = (row.object_id, row.kind, f"{row.tokens:,}", told)
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")
