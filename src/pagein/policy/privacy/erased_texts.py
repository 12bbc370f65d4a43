"""Recognition of erased texts in what comes later, by their tombstones.

Rules of this file
------------------
1. Nothing stored reveals an erased text, or anything about it but its length, to a reader without the store's secret.
2. A text is recognised in two steps: by the *anchor* of the erased text, and then by its keyed digest. An anchor is a run of bytes in which
   each byte is replaced by one of 8 letters; the key decides which. One pass of a linear-time engine finds the anchors of some thousand texts.
3. The anchor is the run that is rarest in the erased text itself, so that many candidates are unlikely also where texts are alike.
4. Tombstones of earlier versions have a fingerprint of the first characters in place of the anchor. No anchor can be made from it, so these
   texts are looked for character by character until they are forgotten again.
"""

import hmac
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Final

from pagein.model.text_removal import PrivateSpan, Tombstone
from pagein.policy.privacy.exclusions import digest_of

FORGOTTEN: Final = "forgotten"
"""Name of the span of a forgotten text."""
_WINDOW: Final = 16
_LETTERS: Final = 8
_BITS: Final = 3
"""Bits of a letter in an anchor."""
_PATTERN_BITS: Final = _BITS * _WINDOW
_SEALED_BITS: Final = 63
"""Bits of an anchor with its place in the text: what a database stores as a negative number."""
_FURTHEST: Final = 1 << (_SEALED_BITS - _PATTERN_BITS)
"""An anchor begins before this byte of the text."""
_BEHIND_FIRST: Final = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 with which no character begins."""
_MEMORY: Final = 64 << 20
_TOGETHER: Final = 2_000
"""Anchors that are looked for in one pass. The states of some 10,000 anchors outgrow re2's memory: it falls back to a search that takes
seconds for 1 MB, and writes so to stderr at each find.
"""
_NO_TEXTS: Final[Mapping[tuple[int, int], Collection[str]]] = {}
_LONG: Final = 200
_CLEAN: Final = 4_096
_PRIME: Final = (1 << 61) - 1


def tombstone(text: str, key: bytes) -> Tombstone:
    """Return the tombstone of a text: digest, length and sealed anchor."""
    digest = digest_of(key, text)
    letters = _bytes_of(text).translate(_letters(key))
    size = min(len(text), _WINDOW)
    runs = [letters[start : start + size] for start in range(min(len(letters) - size + 1, _FURTHEST))]
    count = Counter(runs)
    start = min(range(len(runs)), key=lambda one: (count[runs[one]], -len(set(runs[one]))))
    pattern = sum((letter - ord("a")) << (_BITS * place) for place, letter in enumerate(runs[start]))
    return Tombstone(digest, len(text), -1 - ((start << _PATTERN_BITS | pattern) ^ _seal(key, digest)))


@dataclass(frozen=True)
class ErasedTexts:
    """The texts that were forgotten in a store. Search costs nothing without tombstones, else a pass for each 2,000."""

    key: bytes = b""
    tombstones: tuple[Tombstone, ...] = ()

    def finds(self, text: str) -> tuple[PrivateSpan, ...]:
        """Return the spans of forgotten texts in a text, in order, without overlap."""
        return joined_spans(self._spans(text))

    def digests_in(self, text: str) -> set[str]:
        """Return the digests of the forgotten texts in a text."""
        return {digest_of(self.key, text[start:end]) for start, end in self._spans(text)}

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        if self.tombstones:
            yield from self._anchored(text)
            yield from self._earlier.find(text)

    def _anchored(self, text: str) -> Iterator[tuple[int, int]]:
        if not self._by_anchor:
            return
        content = _bytes_of(text)
        letters = content.translate(_letters(self.key))
        for anchors in self._anchors:
            passed, chars = 0, 0
            while (found := anchors.search(letters, passed)) is not None:
                at = found.start()
                chars += _count_chars(content[passed:at])
                for size in self._sizes:
                    for (begins, count), digests in self._by_anchor.get(letters[at : at + size], _NO_TEXTS).items():
                        start = chars - _count_chars(content[max(at - begins, 0) : at])
                        if digest_of(self.key, text[start : start + count]) in digests:
                            yield start, start + count
                chars += _count_chars(content[at : at + 1])
                passed = at + 1

    @cached_property
    def _by_anchor(self) -> Mapping[bytes, Mapping[tuple[int, int], Collection[str]]]:
        """Return the digests of the texts, by their anchors, and by the places of these in bytes with the characters of the texts.

        Texts that begin alike have the same anchor; those of the same length cost one digest where it is found.
        """
        found: dict[bytes, dict[tuple[int, int], set[str]]] = {}
        for one in self.tombstones:
            if one.beginning < 0:
                opened = (-1 - one.beginning) ^ _seal(self.key, one.digest)
                size = min(one.chars, _WINDOW)
                anchor = bytes(ord("a") + (opened >> (_BITS * place)) % _LETTERS for place in range(size))
                of_length = found.setdefault(anchor, {}).setdefault((opened >> _PATTERN_BITS, one.chars), set())
                of_length.add(one.digest)
        return found

    @cached_property
    def _sizes(self) -> Sequence[int]:
        return sorted({len(one) for one in self._by_anchor})

    @cached_property
    def _anchors(self) -> Sequence[Any]:
        import re2

        options: Any = re2.Options()  # re2 ships no types
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = _MEMORY
        ordered = sorted(self._by_anchor)
        starts = range(0, len(ordered), _TOGETHER)
        return [re2.compile(b"|".join(ordered[start : start + _TOGETHER]), options) for start in starts]

    @cached_property
    def _earlier(self) -> "_EarlierTexts":
        return _EarlierTexts(self.key, [one for one in self.tombstones if one.beginning >= 0])


def joined_spans(spans: Iterable[tuple[int, int]]) -> tuple[PrivateSpan, ...]:
    """Return the spans of forgotten texts, in order; overlapping ones as one."""
    found: list[PrivateSpan] = []
    for start, end in sorted(spans):
        if found and start < found[-1].end:
            found[-1] = PrivateSpan(found[-1].start, max(end, found[-1].end), FORGOTTEN)
        else:
            found.append(PrivateSpan(start, end, FORGOTTEN))
    return tuple(found)


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _count_chars(content: bytes) -> int:
    """Return how many characters begin in a part of a text."""
    return len(content) if content.isascii() else len(content.translate(None, _BEHIND_FIRST))


@lru_cache(maxsize=8)
def _letters(key: bytes) -> bytes:
    """Return the letter of each byte: a table for `bytes.translate`. Each letter stands for as many bytes. Remembered."""
    order = sorted(range(256), key=lambda one: hmac.digest(key, b"letter %d" % one, sha256))
    table = bytearray(256)
    for place, one in enumerate(order):
        table[one] = ord("a") + place % _LETTERS
    return bytes(table)


def _seal(key: bytes, digest: str) -> int:
    return int.from_bytes(hmac.digest(key, f"anchor {digest}".encode(), sha256)[:8]) >> (64 - _SEALED_BITS)


class _EarlierTexts:
    """Texts with a fingerprint of their first characters, rolled over each candidate."""

    def __init__(self, key: bytes, tombstones: Sequence[Tombstone]) -> None:
        self._key = key
        self._base = int.from_bytes(hmac.digest(key, b"beginnings", sha256)[:7]) | 1
        self._by_window: dict[int, dict[int, list[Tombstone]]] = {}
        for one in tombstones:
            by_beginning = self._by_window.setdefault(min(one.chars, _WINDOW), {})
            by_beginning.setdefault(one.beginning, []).append(one)
        # of long texts in which nothing was found: a text is judged before it becomes an object, and before it is stored
        self._clean: set[bytes] = set()

    def find(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the spans of the texts in a text."""
        if not self._by_window:
            return ()
        digest = sha256(_bytes_of(text)).digest() if len(text) >= _LONG else b""
        if digest in self._clean:
            return ()
        found = list(self._spans(text))
        if digest and not found:
            if len(self._clean) >= _CLEAN:
                self._clean.clear()
            self._clean.add(digest)
        return found

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        for window, known in self._by_window.items():
            for start, fingerprint in self._find_fingerprints(text, window, known):
                for one in known[fingerprint]:
                    if digest_of(self._key, text[start : start + one.chars]) == one.digest:
                        yield start, start + one.chars

    def _find_fingerprints(self, text: str, window: int, known: Container[int]) -> Iterator[tuple[int, int]]:
        """Yield the start and fingerprint of each run of `window` characters with a known fingerprint."""
        codes = [ord(one) + 1 for one in text]
        base, top, value = self._base, pow(self._base, window - 1, _PRIME), 0
        for one in codes[: window - 1]:
            value = (value * base + one) % _PRIME
        # one step for each character, so there is no call in it
        for start, (gone, new) in enumerate(zip([0, *codes], codes[window - 1 :], strict=False)):
            value = ((value - gone * top) * base + new) % _PRIME
            if value in known:
                yield start, value
