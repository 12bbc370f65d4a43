"""Notes about reads and searches, from which budgets, relevance and metrics of a session are counted."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.model.spans import NO_LINES, Run, Spans

ReadMode: TypeAlias = Literal["file", "symbol", "snippet", "diff_preview"]
READ_MODES: Final[tuple[ReadMode, ...]] = ("file", "symbol", "snippet", "diff_preview")


@dataclass(frozen=True, slots=True)
class ReadMeasureNote:
    """A read was answered.

    path: path key of the file; "" if the answer has no file, or one that must not be named.
    first, last: first and last line that the answer stands for; 0 without lines.
    lines, chars: lines of the file and characters of the answer, as sent.
    new: lines sent that the window did not show before.
    item: name of what the answer stands for (see `policy.guards.aggregation.item_id`); "" if it must not be named.
    degraded: whether a budget shortened the answer.
    unrelated: whether the file was outside the places of the last search.
    gaps: runs of lines between first and last that the answer does not stand for.
    """

    mode: ReadMode
    path: str = ""
    first: int = 0
    last: int = 0
    lines: int = 0
    chars: int = 0
    new: int = 0
    item: str = ""
    degraded: bool = False
    unrelated: bool = False
    gaps: tuple[Run, ...] = ()

    @property
    def stands(self) -> Spans:
        """The lines that the answer stands for."""
        return Spans.of((self.first, self.last)).subtract(Spans.of(*self.gaps)) if self.first > 0 else NO_LINES


@dataclass(frozen=True, slots=True)
class SearchMeasureNote:
    """A search was answered.

    query: the pattern, as written.
    paths: path keys of the first files with hits, the best first.
    hits: number of hits.
    where: what was searched: `stored` for what pagein stores, `code` for the files of the workspace.
    scope: the path or the ids to which the search was restricted; "" for none.
    degraded: whether hits or their texts were left out.
    """

    query: str
    paths: tuple[str, ...] = ()
    hits: int = 0
    where: Literal["stored", "code"] = "stored"
    scope: str = ""
    degraded: bool = False
