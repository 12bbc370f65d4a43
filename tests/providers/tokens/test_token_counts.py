"""Token counts: ratios by family, their calibration, and the exact vocabularies."""

import random
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.providers.tokens import vocabularies
from pagein.providers.tokens.counters import Counter, RatioCounter, Sample, counter_for, ratio_counter
from pagein.providers.tokens.ratio_fit import LEAST_RESULT
from pagein.providers.tokens.vocabularies import ExactCounter, exact_counter

PRIOR = RatioCounter(2.85, 2.85)


@pytest.mark.parametrize(
    ("model", "ratio"),
    [
        ("claude-opus-4-5-20251101", 2.85),
        ("anthropic/claude-sonnet-4.6", 2.85),
        ("claude-3-5-haiku-20241022", 2.85),
        ("claude-sonnet-4-20250514", 2.85),
        ("claude-opus-4-7", 2.2),
        ("claude-sonnet-5-5", 2.2),
        ("claude-fable-5", 2.2),
        ("gpt-5.3-codex", 3.8),
        ("gpt-5.5", 4.1),
        ("gpt-5.3-codex-spark", 4.1),
        ("o3", 3.8),
        ("llama-4", 3.5),
        (None, 3.5),
    ],
)
def test_each_family_starts_from_its_own_ratio(model: str | None, ratio: float) -> None:
    assert ratio_counter(model).result == ratio


def test_what_the_model_said_has_a_ratio_of_its_own() -> None:
    counter = RatioCounter(result=4, said=2)
    assert (counter.count("x" * 8), counter.count("x" * 8, "user"), counter.count("x" * 8, "said")) == (2, 2, 4)


def growth(draw: random.Random, result: float, said: float, count: int, odd: float) -> list[Sample]:
    """Calls of a session whose true ratios are known; a share `odd` of them brought something that nobody logged."""
    made = []
    for serial in range(count):
        shown, told = draw.uniform(LEAST_RESULT, 20_000), draw.uniform(0, 3000)
        tokens = shown / result + told / said + 200 + draw.uniform(-30, 30)
        made.append(Sample(shown, told, tokens + (draw.uniform(3000, 60_000) if serial < odd * count else 0)))
    draw.shuffle(made)
    return made


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.floats(1.6, 5), st.floats(1.6, 5), st.floats(0, 0.25))
def test_calibration_finds_a_known_ratio_among_odd_calls(seed: int, result: float, said: float, odd: float) -> None:
    samples = growth(random.Random(seed), result, said, 80, odd)  # noqa: S311  seeded
    assert PRIOR.calibrate(samples).result == pytest.approx(result, rel=0.05)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 30))
def test_calibration_does_not_depend_on_the_order_of_samples(seed: int, count: int) -> None:
    samples = growth(random.Random(seed), 3.3, 2.1, count, 0.2)  # noqa: S311  seeded
    assert PRIOR.calibrate(samples) == PRIOR.calibrate(samples[::-1])


def test_without_telling_samples_calibration_changes_nothing() -> None:
    assert PRIOR.calibrate([]) == PRIOR
    assert PRIOR.calibrate([Sample(LEAST_RESULT - 1, 0, 5000), Sample(9000, 0, -4000)]) == PRIOR


def test_one_sample_moves_the_prior_less_than_fifty_do() -> None:
    calls = [Sample(shown, 0, shown / 4 + 200) for shown in range(3000, 28_000, 500)]
    one, fifty = PRIOR.calibrate(calls[2:3]).result, PRIOR.calibrate(calls).result
    assert PRIOR.result < one < 3.4
    assert fifty == pytest.approx(4, abs=0.1)


@settings(deadline=None)
@given(st.lists(st.builds(Sample, *[st.floats(0, 1e7)] * 3)))
def test_whatever_was_recorded_a_ratio_stays_one_that_a_vocabulary_could_have(samples: list[Sample]) -> None:
    counter = PRIOR.calibrate(samples)
    assert 1.2 <= counter.result <= 8
    assert 2.85 / 1.6 <= counter.said <= 2.85 * 1.6


# --- exact ------------------------------------------------------------------------------------------------------


@pytest.fixture
def exact() -> ExactCounter:
    pytest.importorskip("splintr")
    counter = exact_counter("gpt-5.3-codex")
    assert counter is not None
    return counter


def test_a_special_token_in_a_text_is_text(exact: ExactCounter) -> None:
    assert exact.count("if x: return <|endoftext|>") == 11


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=60))
def test_any_text_can_be_counted_lone_surrogates_included(text: str) -> None:
    pytest.importorskip("splintr")
    counter = exact_counter("gpt-4o")
    assert counter is not None
    assert counter.count(text) >= (1 if text else 0)


def test_counting_by_parts_is_exact(exact: ExactCounter) -> None:
    for file in sorted(Path(vocabularies.__file__).parents[1].rglob("*.py")):
        text = file.read_text() + "\n\n  /* tail */\n/x\r\n\té\n"
        assert exact.count(text) == len(exact._encode(text))


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["\n", "\r\n", " ", "\t", "/", "//", "a", "Été", "1234", "    if x:", "<|end|>", "\u2028", "."])
    )
)
def test_counting_by_parts_is_exact_around_line_ends(parts: list[str]) -> None:
    pytest.importorskip("splintr")
    counter = exact_counter("gpt-4o")
    assert counter is not None
    text = "".join(parts) + "\nword " * 500
    assert counter.count(text) == len(counter._encode(text))


def test_a_text_is_recounted_only_where_it_changed(exact: ExactCounter) -> None:
    lines = [f"line {i} of a long file\n" for i in range(500)]
    exact.count("".join(lines))
    before = exact._part.cache_info().misses
    lines[250] = "another line\n"
    exact.count("".join(lines))
    assert exact._part.cache_info().misses == before + 1


def test_models_without_a_public_vocabulary_are_counted_by_ratio() -> None:
    counter: Counter = counter_for("claude-sonnet-5")
    assert isinstance(counter, RatioCounter)


def test_without_the_extra_every_model_is_counted_by_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabularies._load.cache_clear()
    monkeypatch.setitem(sys.modules, "splintr", None)
    try:
        assert counter_for("gpt-5.5") == ratio_counter("gpt-5.5")
    finally:
        vocabularies._load.cache_clear()
