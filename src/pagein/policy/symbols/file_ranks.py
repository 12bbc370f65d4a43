"""The order of files in a symbol map: by BM25 over the words of their definitions and paths.

What counts was measured: an index of definitions with split identifiers and weighted path words finds the files that are needed;
ranks from the graph of references add nothing to it. References only break ties, and order a map without a question.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pagein.model.symbols import FileSymbols
from pagein.policy.symbols.words import words_of

_K1: Final = 1.2
_B: Final = 0.75
_PATH_WEIGHT: Final = 3


@dataclass(frozen=True, slots=True)
class FileWords:
    """How often each word stands in the path and the definitions of a file. length: number of words."""

    counts: Mapping[str, int]
    length: int


def file_words(path: str, symbols: FileSymbols) -> FileWords:
    """Return the words of a file. A word of the path counts as three of a definition."""
    counts = Counter[str]()
    for definition in symbols.definitions:
        counts.update(words_of(definition.name))
    for word in words_of(path):
        counts[word] += _PATH_WEIGHT
    return FileWords(counts, sum(counts.values()))


def score_files(words: Mapping[str, FileWords], question: Iterable[str]) -> dict[str, float]:
    """Return the BM25 score of each file that has a word of the question."""
    mean = sum(one.length for one in words.values()) / max(len(words), 1) or 1.0
    scores: dict[str, float] = {}
    for word in sorted(set(question)):
        having = [(path, one.counts[word], one.length) for path, one in words.items() if word in one.counts]
        weight = math.log(1 + (len(words) - len(having) + 0.5) / (len(having) + 0.5))
        for path, count, length in having:
            gain = count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length / mean))
            scores[path] = scores.get(path, 0.0) + weight * gain
    return scores


def rank_files(paths: Iterable[str], scores: Mapping[str, float], into: Mapping[str, int]) -> list[str]:
    """Return files in the order of a map: by score, then by references from other files, then by path."""
    return sorted(paths, key=lambda path: (-scores.get(path, 0.0), -into.get(path, 0), path))
