"""Erased texts are recognised wherever they come again, all in one pass, and nothing stored tells them."""

from collections.abc import Iterable
from hashlib import sha256
from itertools import pairwise
from random import Random

import pytest
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


def test_a_place_where_many_texts_may_begin_costs_one_digest_for_each_length() -> None:
    """Texts that begin alike have one anchor: each line of a log was compared with each erased line."""
    head = "2026-11-28 10:00:00 INFO request path=/api/v1/items "
    lines = [f"{head}id={number:04d} status=200" for number in range(300)]
    one = ErasedTexts(KEY, (tombstone(lines[0], KEY),))
    many = ErasedTexts(KEY, tuple(tombstone(line, KEY) for line in lines))
    log = "".join(f"{head}id={number:04d} status=500\n" for number in range(50))
    for erased in (one, many):
        erased.finds(head)  # compiles the anchors
    assert calls(lambda: many.finds(log)) == calls(lambda: one.finds(log))
    assert many.finds(log + lines[299]) == (PrivateSpan(len(log), len(log) + len(lines[299]), "forgotten"),)


def test_the_engine_has_memory_for_the_anchors_of_any_number_of_texts(capfd: pytest.CaptureFixture[str]) -> None:
    """Sessions of 20,000 texts were forgotten: the engine wrote that it lacked memory, and went on a thousand times slower."""
    texts = [sha256(b"%d" % number).hexdigest()[:18] for number in range(20_000)]
    erased = ErasedTexts(KEY, tuple(tombstone(one, KEY) for one in texts))
    whole = " ".join([texts[0], "x" * 100, texts[9_999], texts[-1]])
    assert covered(erased.finds(whole)) == places_of([texts[0], texts[9_999], texts[-1]], whole)
    assert "out of memory" not in capfd.readouterr().err


def test_a_tombstone_costs_no_new_table_of_letters() -> None:
    tombstone("the first text", KEY)
    assert calls(lambda: tombstone("another text", KEY)) < 100


def test_equal_beginnings_of_two_texts_give_tombstones_that_differ() -> None:
    same = "the same sixteen characters and more"
    one, other = tombstone(same + " a", KEY), tombstone(same + " b", KEY)
    assert one.beginning < 0
    assert one.beginning >= -(1 << 63)
    assert one.beginning != other.beginning
    assert tombstone(same, b"l" * 32).beginning != tombstone(same, KEY).beginning
