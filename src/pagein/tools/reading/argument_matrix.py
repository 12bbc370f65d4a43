"""The argument matrix of `read`: the valid arguments of each mode, with type, bounds and default.

The table is the only place with these facts. Validation, the JSON schema of the tool and docs/reference/read.md come from it.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pagein.model.guard_notes import READ_MODES as MODES
from pagein.model.guard_notes import ReadMode

Kind: TypeAlias = Literal["text", "whole", "flag", "choice"]
MOST: Final = 1_000_000_000
"""Largest number that an argument may have."""
LEAST_PREVIEW: Final = 100
"""Smallest `max_preview_chars`."""
BASES: Final = ("HEAD", "WORKTREE", "INDEX", "commit:<sha>", "snapshot:<id>@<version>")
"""Every form of `against`."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One row of the matrix.

    modes: the modes in which the argument is valid.
    default: what holds if the argument is left out, in words; "" for nothing.
    says: meaning, for models and people.
    low, high: bounds of a whole number.
    among: the words of a choice. A word with `<...>` at its end stands for every text that begins like it.
    """

    name: str
    modes: tuple[ReadMode, ...]
    kind: Kind
    says: str
    default: str = ""
    low: int = 1
    high: int = MOST
    among: tuple[str, ...] = ()
    required: bool = False

    @property
    def takes(self) -> str:
        """The accepted values, in words."""
        match self.kind:
            case "text":
                return "a text that is not blank" if self.required else "a text"
            case "flag":
                return "true or false"
            case "whole":
                return f"a whole number from {self.low} to {self.high}"
            case "choice":
                return f"one of: {', '.join(self.among)}"

    def accepts(self, value: object) -> bool:
        """Return whether a value has the right type and is inside of the bounds."""
        match self.kind:
            case "text":
                return isinstance(value, str) and (bool(value.strip()) or not self.required)
            case "flag":
                return isinstance(value, bool)
            case "whole":
                return _is_whole(value) and self.low <= int(value) <= self.high  # type: ignore[call-overload]
            case "choice":
                return isinstance(value, str) and any(_is_word(value, word) for word in self.among)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the argument."""
        only = "" if self.modes == MODES else f"Only with mode {' or '.join(self.modes)}. "
        default = f" Default: {self.default}." if self.default else ""
        described = {"description": f"{only}{self.says}{default}"}
        match self.kind:
            case "text":
                return {"type": "string", **described}
            case "flag":
                return {"type": "boolean", **described}
            case "whole":
                return {"type": "integer", "minimum": self.low, **described}
            case "choice":
                is_closed = not any("<" in word for word in self.among)
                return {"type": "string", **({"enum": [*self.among]} if is_closed else {}), **described}


def _is_whole(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or (math.isfinite(value) and value.is_integer())


def _is_word(value: str, word: str) -> bool:
    begin, angle, _ = word.partition("<")
    return value == word if not angle else value.startswith(begin) and len(value) > len(begin)


_LINES: Final[tuple[ReadMode, ...]] = ("file", "symbol", "snippet")

MATRIX: Final[tuple[Argument, ...]] = (
    Argument(
        "mode",
        MODES,
        "choice",
        "What to read. file: the text of a file. symbol: a function, class or other definition by its name. snippet: some "
        "lines of a file, or the places of a text. diff_preview: how a file differs from another state of it.",
        among=MODES,
        required=True,
    ),
    Argument(
        "target",
        MODES,
        "text",
        "What the mode is about. file, diff_preview: a path. symbol: a name, a qualified name such as Class.method, or an id. "
        "snippet: a path; with pattern also a folder, or . for the workspace.",
        required=True,
    ),
    Argument(
        "offset",
        MODES,
        "whole",
        "Where to begin, counted from 1. file: line. symbol: line of the symbol. snippet: match of the pattern. "
        "diff_preview: hunk.",
        default="1",
    ),
    Argument(
        "limit",
        MODES,
        "whole",
        "How much to show. file, symbol: lines. snippet: matches of the pattern. diff_preview: hunks.",
        default="all that the budget allows",
    ),
    Argument(
        "preview_mode",
        MODES,
        "choice",
        "snippet: show text. none: tell only the place and the sizes.",
        default="snippet",
        among=("none", "snippet"),
    ),
    Argument(
        "max_preview_chars",
        MODES,
        "whole",
        "Characters that the answer may have, up to the limit of the budget.",
        default="the limit of the budget",
        low=LEAST_PREVIEW,
    ),
    Argument("path", ("symbol",), "text", "The file of the symbol, where several symbols have the name."),
    Argument(
        "include_context",
        ("symbol",),
        "flag",
        "Also show the imports of the file, and the first lines of what encloses the symbol.",
        default="false",
    ),
    Argument("start_line", ("snippet",), "whole", "First line to show, counted from 1."),
    Argument("end_line", ("snippet",), "whole", "Last line to show.", default="start_line"),
    Argument(
        "context_lines",
        ("snippet",),
        "whole",
        "Lines to show before and behind.",
        default="2 around the places of a pattern in a file, else 0",
        low=0,
    ),
    Argument(
        "pattern",
        ("snippet",),
        "text",
        "The places of this text instead of lines: a literal text, or /expression/ with the flags i, m, s.",
    ),
    Argument(
        "against",
        ("diff_preview",),
        "choice",
        "The state to compare with. HEAD: the last commit. INDEX: what is staged. WORKTREE: the file on the disk, for a "
        "text in content. A commit, or a version of a stored object.",
        default="HEAD",
        among=BASES,
    ),
    Argument(
        "content", ("diff_preview",), "text", "A proposed text of the file, to compare instead of the file on the disk."
    ),
    Argument(
        "bypass_cache", _LINES, "flag", "Show text that you were shown before, and not a marker.", default="false"
    ),
)


@dataclass(frozen=True, slots=True)
class ReadArguments:
    """The valid arguments of a call, under the names of the matrix; None for omitted arguments."""

    mode: ReadMode
    target: str
    offset: int | None = None
    limit: int | None = None
    preview_mode: Literal["none", "snippet"] = "snippet"
    max_preview_chars: int | None = None
    path: str | None = None
    include_context: bool = False
    start_line: int | None = None
    end_line: int | None = None
    context_lines: int | None = None
    pattern: str | None = None
    against: str = "HEAD"
    content: str | None = None
    bypass_cache: bool = False

    @property
    def tells_places_only(self) -> bool:
        """Whether the call asks for places and sizes instead of text."""
        return self.preview_mode == "none"


@dataclass(frozen=True, slots=True)
class InvalidArguments:
    """Every error in the arguments of a call, in words; at least one."""

    problems: tuple[str, ...]


def parse_arguments(given: Mapping[str, object]) -> ReadArguments | InvalidArguments:
    """Return the arguments of a call, or every problem found. None counts as omitted."""
    told = {name: value for name, value in given.items() if value is not None}
    problems = tuple(_problems(told))
    if problems:
        return InvalidArguments(problems)
    rows = {row.name: row for row in MATRIX}
    values: dict[str, Any] = dict(told)
    values |= {name: int(values[name]) for name in values if rows[name].kind == "whole"}
    return ReadArguments(**values)


def _problems(told: Mapping[str, object]) -> Iterator[str]:
    rows = {row.name: row for row in MATRIX}
    mode = told.get("mode")
    if mode not in MODES:
        yield f"'mode' must be {rows['mode'].takes}"
        return
    for name, value in told.items():
        row = rows.get(name)
        if row is None:
            yield f"{name[:80]} is no argument of read; the arguments are: {', '.join(rows)}. Remove it."
        elif mode not in row.modes:
            yield f"{name} is only valid for {_modes(row.modes)}. Remove it or switch mode."
        elif not row.accepts(value):
            yield f"'{name}' must be {row.takes}"
    if "target" not in told:
        yield f"'target' must be {rows['target'].takes}"
    if mode == "snippet":
        yield from _problems_of_snippet(told)


def _modes(modes: tuple[ReadMode, ...]) -> str:
    return " or ".join(f"mode='{mode}'" for mode in modes)


def _problems_of_snippet(told: Mapping[str, object]) -> Iterator[str]:
    first, last = told.get("start_line"), told.get("end_line")
    if "pattern" in told:
        for name in ("start_line", "end_line"):
            if name in told:
                yield f"{name} and pattern exclude each other. Remove one of them."
        return
    for name in ("offset", "limit"):
        if name in told:
            yield f"{name} needs 'pattern' in mode='snippet'. Remove it, or take start_line and end_line."
    if first is None and last is not None:
        yield "end_line needs 'start_line'. Add it."
    elif first is None and ":" not in str(told.get("target", "")):
        yield "mode='snippet' needs 'start_line' or 'pattern'. Add one, or switch to mode='file'."
    elif _is_whole(first) and _is_whole(last) and int(last) < int(first):  # type: ignore[call-overload]
        yield "'end_line' must be start_line or a later line"


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the tool's arguments."""
    return {
        "type": "object",
        "properties": {row.name: row.schema for row in MATRIX},
        "required": [row.name for row in MATRIX if row.required],
    }


def matrix_table() -> Iterator[str]:
    """Yield the rows of the Markdown table for the docs."""
    yield f"| argument | {' | '.join(MODES)} | takes | default | meaning |"
    yield f"|---|{'---|' * len(MODES)}---|---|---|"
    for row in MATRIX:
        valid = " | ".join("yes" if mode in row.modes else "" for mode in MODES)
        default = "required" if row.required else row.default
        words = ", ".join(f"`{word}`" for word in row.among)
        takes = f"one of: {words}" if row.among else row.takes.replace(str(MOST), "10⁹")
        yield f"| `{row.name}` | {valid} | {takes} | {default} | {row.says} |"
