"""The words in identifiers and paths, for finding `parseHTTPRequest` by "http request"."""

import functools
import re
from typing import Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
_PLURALS: Final = (("ies", "y"), ("sses", "ss"), ("es", "e"), ("s", ""))
_FORMS: Final = ("ing", "ed")
_SHORTEST: Final = 3
_DOUBLED: Final = re.compile(r"([^\Wals])\1$")


@functools.lru_cache(maxsize=100_000)
def words_of(name: str) -> tuple[str, ...]:
    """Return the words of an identifier, a path or a sentence, in lower case and without the usual endings."""
    return tuple(_stem(word.lower()) for word in _WORD.findall(name) if len(word) > 1)


def _stem(word: str) -> str:
    for ending, instead in _PLURALS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST and not word.endswith("ss"):
            return word.removesuffix(ending) + instead
    for ending in _FORMS:
        if word.endswith(ending) and len(word) - len(ending) > _SHORTEST:
            return _DOUBLED.sub(r"\1", word.removesuffix(ending))
    return word
