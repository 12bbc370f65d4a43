"""The words in identifiers and paths, so that `parseHTTPRequest` is found by "http request"."""

import functools
import re
from typing import Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
_ENDINGS: Final = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", ""))
_SHORTEST: Final = 4


@functools.lru_cache(maxsize=100_000)
def words_of(name: str) -> tuple[str, ...]:
    """Return the words of an identifier, a path or a sentence, in lower case and without the usual endings."""
    return tuple(_stem(word.lower()) for word in _WORD.findall(name) if len(word) > 1)


def _stem(word: str) -> str:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST and not word.endswith("ss"):
            return word.removesuffix(ending) + instead
    return word
