"""Which files a shell command line shows, as far as a best-effort parse can tell.

Known are `cat`, `nl`, `head`, `tail`, `sed -n 'a,bp'`, `bat`, `less` and `more`, alone or piped into another of them that narrows the
range. A file that goes through any other filter shows unknown lines of itself, and is left out.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.model.messages import Access

_LONGEST_COMMAND: Final = 20_000
_SEPARATORS: Final = frozenset((";", "&&", "||", "&", "(", ")", "{", "}", "do", "then", "else", "\n"))
_WHOLE: Final = frozenset(("cat", "nl", "bat", "less", "more"))
_SED_RANGE: Final = re.compile(r"(\d+)(?:,(\d+|\$))?p")
_COUNT: Final = re.compile(r"-(?:n|-lines=)?(\d+)")
_REDIRECT: Final = re.compile(r"\d*[<>]\S*")
_TO_DESCRIPTOR: Final = re.compile(r"\d*>&\d|&>>?\s*\S+")


@dataclass(frozen=True, slots=True)
class _Shown:
    """What one command of a pipeline shows: of which files, which lines. `start` None: lines that cannot be told."""

    files: tuple[str, ...] = ()
    start: int | None = None
    end: int | None = None
    is_viewer: bool = True

    @property
    def span(self) -> tuple[int | None, int | None]:
        """First and last line as an access tells them: a whole file has neither."""
        return (None, None) if self.end is None and self.start == 1 else (self.start, self.end)


_NOTHING: Final = _Shown(is_viewer=False)


def shell_reads(command: str, folder: str | None = None) -> Iterator[Access]:
    """The reads of a command line, in order. folder: where it runs; a leading `cd` changes it."""
    for pipeline in _pipelines(command):
        words = pipeline[0]
        if words[:1] == ["cd"] and len(words) > 1:
            folder = _joined(folder, words[1])
            continue
        shown = _shown(words)
        for later in pipeline[1:]:
            shown = _narrowed(shown, _shown(later))
        for file in shown.files:
            yield Access("read", _joined(folder, file), *shown.span, "shell")


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
    except ValueError:  # an open quote: what came before it still counts
        return
    yield pipeline


def _shown(words: Sequence[str]) -> _Shown:
    name = words[0].rsplit("/", 1)[-1] if words else ""
    rest = _arguments(words[1:])
    files = tuple(word for word in rest if _is_file(word))
    if name in _WHOLE:
        return _Shown(files, 1, None)
    if name == "head":
        return _Shown(_after_count(rest), 1, _line_count(rest))
    if name == "tail":
        start = next((int(word[1:]) for word in rest if re.fullmatch(r"\+\d+", word)), None)
        return _Shown(_after_count(rest), start, None)
    if name == "sed" and "-n" in rest:
        return _sed(rest)
    return _NOTHING


def _arguments(words: Sequence[str]) -> list[str]:
    """The words without redirections and what they point at."""
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
        if word in ("-n", "--lines") and place + 1 < len(words) and words[place + 1].isdigit():
            return int(words[place + 1])
        match = _COUNT.fullmatch(word)
        if match:
            return int(match[1])
    return None if any(word.startswith("-c") for word in words) else 10


def _after_count(words: Sequence[str]) -> tuple[str, ...]:
    counted = {place + 1 for place, word in enumerate(words) if word in ("-n", "-c", "--lines", "--bytes")}
    return tuple(
        word
        for place, word in enumerate(words)
        if place not in counted and _is_file(word) and not re.fullmatch(r"\+\d+", word)
    )


def _sed(words: Sequence[str]) -> _Shown:
    script = next((word for word in words if not word.startswith("-")), "")
    match = _SED_RANGE.fullmatch(script.strip().rstrip(";"))
    files = tuple(word for word in words if _is_file(word) and word != script)
    if match is None:
        return _NOTHING
    start = int(match[1])
    return _Shown(files, start, start if match[2] is None else None if match[2] == "$" else int(match[2]))


def _narrowed(first: _Shown, then: _Shown) -> _Shown:
    """What is left of the first command's lines behind the second; nothing that can be told, if that is no viewer."""
    if not then.is_viewer or then.files:
        return _NOTHING
    if first.start is None or then.start is None:  # the last lines of something of unknown length
        return _Shown(first.files)
    start = first.start + then.start - 1
    ends = [end for end in (first.end, None if then.end is None else first.start + then.end - 1) if end is not None]
    return _Shown(first.files, start, min(ends, default=None))


def _joined(folder: str | None, path: str) -> str:
    if folder is None or path.startswith(("/", "~")) or path[1:2] == ":":
        return path
    return f"{folder.rstrip('/')}/{path.removeprefix('./')}"
