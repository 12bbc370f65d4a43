"""Erased texts are recognised wherever they come again, all in one pass, and nothing stored tells them."""

from collections.abc import Iterable
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.work_counts import calls

from pagein.model.text_removal import PrivateSpan, Tombstone
from pagein.policy.privacy.erased_texts import ErasedTexts, tombstone
from pagein.policy.privacy.exclusions import digest_of

KEY = b"k" * 32
# few letters, so that texts overlap themselves and one another; of one to four bytes, and half a surrogate pair
LETTERS = st.text(alphabet="ab\u00e9\u65e5\U0001f600\ud800", max_size=60)
TEXTS = st.lists(st.text(alphabet="ab\u00e9\u65e5\U0001f600\ud800", min_size=6, max_size=30), min_size=1, max_size=4)


def covered(spans: Iterable[PrivateSpan]) -> set[int]:
    return {place for one in spans for place in range(one.start, one.end)}


def places_of(texts: Iterable[str], whole: str) -> set[int]:
    return {
        place
        for text in texts
        for start in range(len(whole))
        if whole.startswith(text, start)
        for place in range(start, start + len(text))
    }


def earlier(text: str, key: bytes = KEY) -> Tombstone:
    """What pagein stored before it had anchors: a polynomial of the first 16 characters."""
    import hmac
    from hashlib import sha256

    base = int.from_bytes(hmac.new(key, b"beginnings", sha256).digest()[:7]) | 1
    value = 0
    for one in text[:16]:
        value = (value * base + ord(one) + 1) % ((1 << 61) - 1)
    return Tombstone(digest_of(key, text), len(text), value)


@given(TEXTS, st.lists(LETTERS, max_size=5), st.randoms())
@settings(max_examples=300)
def test_exactly_the_places_of_erased_texts_are_found(texts: list[str], between: list[str], dice: Random) -> None:
    whole = "".join(part + dice.choice([*texts, ""]) for part in (*between, ""))
    erased = ErasedTexts(KEY, tuple(tombstone(one, KEY) for one in texts))
    found = erased.finds(whole)
    assert covered(found) == places_of(texts, whole)
    assert all(one.end <= other.start for one, other in pairwise(found))


@given(TEXTS, TEXTS, LETTERS)
def test_tombstones_of_earlier_versions_are_found_beside_the_others(old: list[str], new: list[str], rest: str) -> None:
    whole = f"{rest}{old[0]}{rest}{new[0]}"
    erased = ErasedTexts(KEY, (*map(earlier, old), *(tombstone(one, KEY) for one in new)))
    assert covered(erased.finds(whole)) == places_of([*old, *new], whole)
    assert covered(erased.finds(whole)) == places_of([*old, *new], whole), "nothing was remembered as clean"


def test_the_search_is_one_pass_however_many_texts_of_however_many_lengths() -> None:
    texts = [f"{number} is a secret of some length"[: 6 + number % 20] for number in range(100, 400)]
    one = ErasedTexts(KEY, (tombstone(texts[0], KEY),))
    many = ErasedTexts(KEY, tuple(tombstone(text, KEY) for text in dict.fromkeys(texts)))
    short, long = "\u00fc" + "lorem ipsum dolor " * 10, "\u00fc" + "lorem ipsum dolor " * 10_000
    for erased in (one, many):
        erased.finds(short)  # compiles the anchors
        assert calls(lambda: erased.finds(short)) == calls(lambda: erased.finds(long)) < 25  # noqa: B023


def test_a_text_that_begins_as_many_do_is_no_candidate_at_each_of_them() -> None:
    """Every line of a log begins alike; the anchor lies where the erased text differs."""
    head = "2026-11-28 10:00:00 INFO "
    secret = f"{head}the dove lands at nine\n"
    erased = ErasedTexts(KEY, (tombstone(secret, KEY),))
    log = "".join(f"{head}line {number}\n" for number in range(1_000))
    few = calls(lambda: erased.finds(head))
    assert calls(lambda: erased.finds(log)) <= few + 60
    assert erased.finds(log + secret) == (PrivateSpan(len(log), len(log) + len(secret), "forgotten"),)


def test_equal_beginnings_of_two_texts_give_tombstones_that_differ() -> None:
    same = "the same sixteen characters and more"
    one, other = tombstone(same + " a", KEY), tombstone(same + " b", KEY)
    assert one.beginning < 0
    assert one.beginning >= -(1 << 63)
    assert one.beginning != other.beginning
    assert tombstone(same, b"l" * 32).beginning != tombstone(same, KEY).beginning
