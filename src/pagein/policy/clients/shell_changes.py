"""Files deleted or moved by a shell command line, and whether the line changes files at all, by a careful parse.

Rules of this file
------------------
1. Only a command line whose success is that of each of its commands proves a deletion or a move: one command, or several
   joined by `&&`.
2. A command of unknown effect changes files, as far as anybody knows. So does every command line that is not fully understood.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.policy.clients.profile import arguments_of
from pagein.policy.clients.shell_reads import command_line, pipelines

_LONGEST_COMMAND: Final = 2_000
_UNKNOWN: Final = re.compile(r"[`*?<>~\\\[\]{}()#!\n]|\$|\|\||(?<!&)&(?!&)")
_HARMLESS_REDIRECT: Final = re.compile(r"\s(?:\d?>/dev/null|2>&1)(?=\s|$)")
_HARMLESS: Final = frozenset(
    [
        "cat",
        "cd",
        "cmp",
        "cut",
        "diff",
        "du",
        "echo",
        "egrep",
        "false",
        "fgrep",
        "grep",
        "head",
        "id",
        "jq",
        "ls",
        "nl",
        "printf",
        "ps",
        "pwd",
        "rg",
        "seq",
        "sleep",
        "sort",
        "stat",
        "tail",
        "test",
        "tr",
        "tree",
        "true",
        "type",
        "uname",
        "wc",
        "which",
        "whoami",
    ]
)
_HARMLESS_GIT: Final = frozenset(
    ("add", "blame", "diff", "grep", "log", "ls-files", "rev-parse", "shortlog", "show", "status")
)
_CHECKS: Final = re.compile(
    r"(?:\S*/)?(?:(?:python3?(?:\.\d+)? -m )?(?:pytest|unittest|mypy|pyright)|ruff check|eslint|go (?:build|test|vet)|cargo (?:build|check|clippy|test)"
    r"|(?:tsc|tsgo)(?= .*--noEmit\b| --noEmit\b))(?= |\Z)"
)
_CHECK_OPTION: Final = re.compile(
    r"--|-{1,2}(?:[hqvsxl]+|[kmnpj]\d*|rA|ra|run|race|count|short|timeout|cover|tags|failfast|bench|tb|maxfail|lf|ff|no-header|no-cov|quiet|verbose"
    r"|noEmit|lib|bins|tests|all|workspace|release|package|features|all-features|all-targets|strict|colors?|ignore|deselect|pretty|project"
    r"|skipLibCheck|durations|nocapture|test-threads|exact|ignored|ext|max-warnings)(?:=.*)?"
)
"""The options with which a check surely changes no file. Many tools have one that updates what they compare with."""
_WRITES: Final = re.compile(
    r"-[a-zA-Z]*o.*|-O.*|--(?:output|pre|to-command|open-files-in-pager|ext-diff|textconv)(?:[=-].*)?"
)
"""Options by which some of the harmless commands write a file, or run another program."""


_BACKGROUND: Final = ("run_in_background", "is_background", "background")


@dataclass(frozen=True, slots=True)
class ShellChange:
    """A file that a command deletes or moves.

    path: as the command names it. to: where it is moved; None if it is deleted.
    """

    path: str
    to: str | None = None


def shell_changes(arguments: str) -> tuple[ShellChange, ...]:
    """Return the files that a shell call deletes or moves if it succeeds; nothing for a command line with another change.

    arguments: JSON text of the call.
    """
    line, folder = command_line(arguments_of(arguments))
    if line is None or len(line) > _LONGEST_COMMAND or _UNKNOWN.search(line) or ";" in line:
        return ()
    found: list[ShellChange] = []
    for pipeline in pipelines(line):
        words = pipeline[0]
        if len(pipeline) > 1 or words[:1] == ["cd"] or not words:
            return ()
        changes = tuple(_changes_of(words))
        if not changes and not _is_harmless(words):
            return ()
        found += changes
    under = "" if folder is None else f"{folder.rstrip('/')}/"
    return tuple(
        ShellChange(_inside(under, one.path), None if one.to is None else _inside(under, one.to)) for one in found
    )


def is_harmless(arguments: str) -> bool:
    """Return whether a shell call only shows something, or only deletes and moves the files of `shell_changes`."""
    line, _ = command_line(arguments_of(arguments))
    if line is None or len(line) > _LONGEST_COMMAND:
        return False
    if shell_changes(arguments):
        return True
    line = _HARMLESS_REDIRECT.sub(" ", line)
    # quoted text may hold anything, as far as the shell itself does nothing with it
    bare = line if '"' in line else re.sub(r"'[^']*'", "''", line)  # an apostrophe within double quotes is none
    if re.search(r"[`<>\n]|\$\(|(?<!&)&(?!&)", bare):
        return False
    return all(_is_harmless(words) for pipeline in pipelines(line) for words in pipeline)


def runs_on(arguments: str) -> bool:
    """Return whether a call leaves its command running in the background."""
    row = arguments_of(arguments)
    line, _ = command_line(row)
    return any(row.get(name) is True for name in _BACKGROUND) or (line or "").rstrip().endswith("&")


def _inside(folder: str, path: str) -> str:
    return path if path.startswith(("/", "~")) else f"{folder}{path}"


def _changes_of(words: Sequence[str]) -> Iterator[ShellChange]:
    if words[:1] == ["git"]:
        words = words[1:]
    name = words[0] if words else ""
    options = [word for word in words[1:] if word.startswith("-")]
    files = [word for word in words[1:] if not word.startswith("-")]
    if name == "rm" and all(re.fullmatch(r"-[fv]+", one) for one in options):
        yield from (ShellChange(file) for file in files)
    if name == "mv" and all(one in ("-f", "-v") for one in options) and len(files) == 2 and _is_file(*files):  # noqa: PLR2004
        yield ShellChange(files[0], files[1])


def _is_file(path: str, to: str) -> bool:
    """Return whether a file was surely moved to this path, and not into a folder of this name."""
    ends = [one.rpartition("/")[2].rpartition(".")[2] for one in (path, to)]
    return all("." in one.rpartition("/")[2] for one in (path, to)) and ends[0] == ends[1]


def _is_harmless(words: Sequence[str]) -> bool:
    name = words[0].rpartition("/")[2] if words else ""
    rest = words[1:]
    if name in ("npx", "uv", "poetry") and rest:
        return _is_check([one for one in rest if one != "run"])
    if _is_check(words):
        return True
    if name == "git":
        return bool(rest) and rest[0] in _HARMLESS_GIT and not any(_WRITES.fullmatch(word) for word in rest)
    if name == "sed":
        return rest[:1] == ["-n"] and len(rest) > 1 and re.fullmatch(r"\d+(?:,(?:\d+|\$))?p;?", rest[1]) is not None
    if name == "find":
        return not any(word.startswith(("-exec", "-ok", "-delete", "-fprint", "-fls")) for word in rest)
    return name in _HARMLESS and not any(_WRITES.fullmatch(word) for word in rest)


def _is_check(words: Sequence[str]) -> bool:
    """Return whether a command only checks or tests. Such a command changes sources only by further options."""
    are_safe = all(_CHECK_OPTION.fullmatch(word) for word in words if word.startswith("-"))
    return are_safe and _CHECKS.match(" ".join(words)) is not None
