"""Exact token counts for models with a public vocabulary (OpenAI), through the `tokens` extra."""

import re
from functools import cache, lru_cache
from typing import Final, Protocol

_CHUNKED_FROM: Final = 2_000
_CHUNKS_REMEMBERED: Final = 1 << 16

# In these vocabularies no token crosses a newline that is followed by anything but whitespace or a slash, so the
# parts between such cuts can be counted, and remembered, one by one.
_CUT: Final = re.compile(r"(?<=\n)(?=[^\s/])")

_MODELS: Final = (
    (re.compile(r"^(?:gpt-(?:4o|4\.1|4\.5|[5-9])|o[1-9]\b|chatgpt-4o|codex-mini)"), "o200k_base"),
    (re.compile(r"^gpt-(?:4|3\.5)"), "cl100k_base"),
)


class _Tokenizer(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...


class ExactCounter:
    """Counts with a vocabulary. A special token is counted as text; a lone surrogate counts as a question mark."""

    def __init__(self, tokenizer: _Tokenizer) -> None:
        self._encode = tokenizer.encode_ordinary
        self._part = lru_cache(_CHUNKS_REMEMBERED)(self._whole)

    def count(self, text: str, kind: str = "result") -> float:  # noqa: ARG002  a vocabulary treats every kind alike
        """Count the tokens of a text. For a long text seen before, only changed parts are counted again."""
        sound = text if text.isascii() else text.encode("utf-8", "replace").decode()
        if len(sound) < _CHUNKED_FROM:
            return self._whole(sound)
        return sum(map(self._part, _CUT.split(sound)))

    def _whole(self, text: str) -> int:
        return len(self._encode(text))


def exact_counter(model: str | None) -> ExactCounter | None:
    """The exact counter for a model id as recorded; None without a public vocabulary or the `tokens` extra."""
    name = (model or "").lower().rpartition("/")[2]
    vocabulary = next((known for pattern, known in _MODELS if pattern.search(name)), None)
    return None if vocabulary is None else _load(vocabulary)


@cache
def _load(vocabulary: str) -> ExactCounter | None:
    try:
        import splintr
    except ImportError:
        return None
    return ExactCounter(splintr.Tokenizer.from_pretrained(vocabulary))
