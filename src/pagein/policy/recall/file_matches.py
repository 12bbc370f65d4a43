"""The order of the files that a search found: by hits for their length, and by words of the query in their paths."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Final

from pagein.model.code_search import CodeFile

MOST_NAMED: Final = 10
"""Number of files that are found by their names."""
_SATURATION: Final = 1.2
_LENGTH: Final = 0.75
_PATH: Final = 1.0
_NAME: Final = 2.0
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_LEAST: Final = 2
_STEM: Final = 4
_ASIDE: Final = 1.0
_TESTS: Final = frozenset({"test", "tests"})


def rank_files(query: str, files: Sequence[CodeFile]) -> list[CodeFile]:
    """Return the files, the best first; files of the same score by their paths.

    The score is the term weight of BM25 for hits and lines, plus a bonus for words of the query in the file's name and in
    its folders. Tests come after what they test, unless the query is about tests.
    """
    words = words_of(query)
    mean = sum(one.lines for one in files) / len(files) if files else 1.0
    return sorted(files, key=lambda one: (-round(_score(one, words, mean), 9), one.path))


def rank_names(text: str, files: Iterable[CodeFile]) -> list[CodeFile]:
    """Return the first files with a text in their path, in upper or lower case: exact names first, then other names."""
    wanted = text.strip().lower()
    if not wanted or "\n" in wanted:
        return []
    found = []
    for file in files:
        path = file.path.lower()
        if wanted in path:
            name = path.rpartition("/")[2]
            is_name = path == wanted or path.endswith(f"/{wanted}") or name.partition(".")[0] == wanted
            found.append((not is_name, wanted not in name, len(path), file.path, file))
    return [one[-1] for one in sorted(found, key=lambda one: one[:-1])[:MOST_NAMED]]


def words_of(text: str) -> frozenset[str]:
    """Return the words in a text, a name or an expression, in lower case: `parseURL` has `parse` and `url`."""
    return frozenset(word.lower() for word in _WORD.findall(text) if len(word) >= _LEAST)


def _score(file: CodeFile, words: frozenset[str], mean: float) -> float:
    length = 1 - _LENGTH + _LENGTH * file.lines / max(mean, 1.0)
    weight = file.hits * (_SATURATION + 1) / (file.hits + _SATURATION * length) if file.hits else 0.0
    folders, _, name = file.path.rpartition("/")
    named = _NAME * _share(words, name.partition(".")[0]) + _PATH * _share(words, folders)
    is_aside = not _TESTS.isdisjoint(words_of(file.path)) and _TESTS.isdisjoint(words)
    return weight + named - (_ASIDE if is_aside else 0.0)


def _is_akin(one: str, other: str) -> bool:
    """Return whether two words are the same, or one is the beginning of the other, as in `judgement` and `judge`."""
    return one == other or (min(len(one), len(other)) >= _STEM and (one.startswith(other) or other.startswith(one)))


def _share(words: Iterable[str], text: str) -> float:
    """Return how much of the query's words a text has, from 0 to 1, less for each further word."""
    wanted, found = frozenset(words), words_of(text)
    common = sum(any(_is_akin(one, other) for other in found) for one in wanted)
    return common / math.sqrt(len(wanted) * max(len(found), 1)) if common else 0.0
