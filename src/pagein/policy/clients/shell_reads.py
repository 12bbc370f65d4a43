"""Files that a shell command line shows, by a best-effort parse.

Known are `cat`, `nl`, `head`, `tail`, `sed -n 'a,bp'`, `bat`, `less` and `more`, alone or piped into another of them
that narrows the range. A file that goes through any other filter shows unknown lines of itself, and is left out.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pagein.model.messages import FileAccess

_LONGEST_COMMAND: Final = 20_000
_SEPARATORS: Final = frozenset((";", "&&", "||", "&", "(", ")", "{", "}", "do", "then", "else", "\n"))
_WHOLE: Final = frozenset(("cat", "nl", "bat", "less", "more"))
_NUMBER: Final = r"[0-9]{1,15}"  # as the commands take it; `int` takes no text of any length
_SED_RANGE: Final = re.compile(rf"({_NUMBER})(?:,({_NUMBER}|\$))?p")
_COUNT: Final = re.compile(rf"-(?:n|-lines=)?({_NUMBER})")
_FROM: Final = re.compile(rf"\+{_NUMBER}")
_REDIRECT: Final = re.compile(r"\d*[<>]\S*")
_TO_DESCRIPTOR: Final = re.compile(r"\d*>&\d|&>>?\s*\S+")
_SHELL_WORDS: Final = 3  # of `bash -lc COMMAND`
_STRANGE: Final = re.compile(r"[`*?<>;~\n\\\[\]{}()#!]|\$(?!p)|\|\||(?<!&)&(?!&)")
_FILE: Final = r"(?:\0[^-\0][^\0]*)"
_RANGE: Final = rf"\0{_NUMBER}(?:,(?:{_NUMBER}|\$))?p;?"
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        rf"cat(?:\0-n)?{_FILE}?",
        rf"nl\0-ba{_FILE}",
        rf"sed\0-n{_RANGE}{_FILE}?",
        rf"head(?:\0-n\0?{_NUMBER}|\0-{_NUMBER})?{_FILE}?",
    )
)


@dataclass(frozen=True, slots=True)
class _ShellView:
    """The files and lines shown by a command of a pipeline.

    start: first line; None for unknown lines.
    """

    files: tuple[str, ...] = ()
    start: int | None = None
    end: int | None = None
    is_viewer: bool = True

    @property
    def span(self) -> tuple[int | None, int | None]:
        """First and last line as an access states them: a whole file has neither."""
        return (None, None) if self.end is None and self.start == 1 else (self.start, self.end)


_NOTHING: Final = _ShellView(is_viewer=False)


def shell_reads(command: str, folder: str | None = None) -> Iterator[FileAccess]:
    """Yield the reads of a command line, in order.

    folder: where it runs; a leading `cd` changes it.
    """
    for pipeline in pipelines(command):
        words = pipeline[0]
        if words[:1] == ["cd"] and len(words) > 1:
            folder = _join_path(folder, words[1])
            continue
        shown = _view_of_command(words)
        for later in pipeline[1:]:
            shown = _narrow_view(shown, _view_of_command(later))
        for file in shown.files:
            yield FileAccess("read", _join_path(folder, file), *shown.span, "shell")


def pipelines(command: str) -> Iterator[list[list[str]]]:
    """Yield the pipelines of a command line, each as the words of its commands, up to a quote without an end."""
    for pipeline in _parsed(command):
        yield [list(words) for words in pipeline]


@lru_cache(maxsize=64)  # several questions are asked about each command, one after another
def _parsed(command: str) -> tuple[list[list[str]], ...]:
    return tuple(_pipelines(command))


def _pipelines(command: str) -> Iterator[list[list[str]]]:
    lexer = shlex.shlex(_TO_DESCRIPTOR.sub(" ", command[:_LONGEST_COMMAND]), posix=True, punctuation_chars=";&|()\n")
    lexer.whitespace = " \t\r"
    lexer.commenters = ""
    lexer.whitespace_split = True
    pipeline: list[list[str]] = [[]]
    try:
        for token in lexer:
            if token in _SEPARATORS or (token and set(token) <= set(";&\n()")):
                yield pipeline
                pipeline = [[]]
            elif token == "|":  # noqa: S105
                pipeline.append([])
            else:
                pipeline[-1].append(token)
    except ValueError:  # an open quote: earlier commands still count
        return
    yield pipeline


def _view_of_command(words: Sequence[str]) -> _ShellView:
    name = words[0].rsplit("/", 1)[-1] if words else ""
    rest = _arguments(words[1:])
    files = tuple(word for word in rest if _is_file(word))
    if name in _WHOLE:
        return _ShellView(files, 1, None)
    if name == "head":
        return _ShellView(_after_count(rest), 1, _line_count(rest))
    if name == "tail":
        start = next((int(word[1:]) for word in rest if _FROM.fullmatch(word)), None)
        return _ShellView(_after_count(rest), start, None)
    if name == "sed" and "-n" in rest:
        return _view_of_sed(rest)
    return _NOTHING


def _arguments(words: Sequence[str]) -> list[str]:
    """Return the words without redirections and their targets."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or _REDIRECT.fullmatch(word):
            skip = not skip and word.endswith((">", "<"))
            continue
        kept.append(word)
    return kept


def _is_file(word: str) -> bool:
    return bool(word) and not word.startswith(("-", "<", ">", "$", "`")) and "*" not in word and not word.isdigit()


def _line_count(words: Sequence[str]) -> int | None:
    for place, word in enumerate(words):
        if word in ("-n", "--lines") and place + 1 < len(words):
            return int(words[place + 1]) if re.fullmatch(_NUMBER, words[place + 1]) else None
        match = _COUNT.fullmatch(word)
        if match:
            return int(match[1])
    return None if any(word.startswith("-c") for word in words) else 10


def _after_count(words: Sequence[str]) -> tuple[str, ...]:
    counted = {place + 1 for place, word in enumerate(words) if word in ("-n", "-c", "--lines", "--bytes")}
    return tuple(
        word
        for place, word in enumerate(words)
        if place not in counted and _is_file(word) and not _FROM.fullmatch(word)
    )


def _view_of_sed(words: Sequence[str]) -> _ShellView:
    script = next((word for word in words if not word.startswith("-")), "")
    match = _SED_RANGE.fullmatch(script.strip().rstrip(";"))
    files = tuple(word for word in words if _is_file(word) and word != script)
    if match is None:
        return _NOTHING
    start = int(match[1])
    return _ShellView(files, start, start if match[2] is None else None if match[2] == "$" else int(match[2]))


def _narrow_view(first: _ShellView, then: _ShellView) -> _ShellView:
    """Return the first command's lines after the second; unknown if the second is no viewer."""
    if not then.is_viewer or then.files:
        return _NOTHING
    if first.start is None or then.start is None:  # the last lines of an output of unknown length
        return _ShellView(first.files)
    start = first.start + then.start - 1
    ends = [end for end in (first.end, None if then.end is None else first.start + then.end - 1) if end is not None]
    return _ShellView(first.files, start, min(ends, default=None))


def _join_path(folder: str | None, path: str) -> str:
    if folder is None or path.startswith(("/", "~")) or path[1:2] == ":":
        return path
    return f"{folder.rstrip('/')}/{path.removeprefix('./')}"


@dataclass(frozen=True, slots=True)
class ExactRead:
    """A command line for showing lines of one file, without another effect.

    last: None for every following line. numbered: as `cat -n` does.
    """

    path: str
    first: int
    last: int | None
    numbered: bool = False


def exact_read(arguments: Mapping[str, object]) -> ExactRead | None:
    """Return the read in a shell call's arguments; None if the command does, or might do, anything else."""
    command, where = command_line(arguments)
    if command is None or _STRANGE.search(command) is not None:
        return None
    found = list(pipelines(command))
    if len(found) > 1 and len(found[0]) == 1 and found[0][0][:1] == ["cd"]:
        return _exact(found[1:], _join_path(where, found[0][0][1])) if len(found[0][0]) > 1 else None
    return _exact(found, where)


def command_line(arguments: Mapping[str, object]) -> tuple[str | None, str | None]:
    """Return the command line in a shell call's arguments, and the folder where it runs; None if either is unknown."""
    command = arguments.get("cmd", arguments.get("command"))
    if isinstance(command, list):
        command = command[-1] if len(command) == _SHELL_WORDS and str(command[1]).startswith("-") else None
    folder = arguments.get("workdir", arguments.get("cwd"))
    return command if isinstance(command, str) else None, folder if isinstance(folder, str) else None


def _exact(pipelines: Sequence[list[list[str]]], folder: str | None) -> ExactRead | None:
    if len(pipelines) != 1 or not all(_is_simple(words) for words in pipelines[0]):
        return None
    words = pipelines[0]
    shown = _view_of_command(words[0])
    for later in words[1:]:
        shown = _narrow_view(shown, _view_of_command(later))
    if len(shown.files) != 1 or shown.start is None:
        return None
    numbered = words[0][0] == "nl" or words[0][:2] == ["cat", "-n"]
    return ExactRead(_join_path(folder, shown.files[0]), shown.start, shown.end, numbered)


def _is_simple(words: Sequence[str]) -> bool:
    """Return whether this command has a fully understood form."""
    return any(form.fullmatch("\0".join(words)) is not None for form in _FORMS)
