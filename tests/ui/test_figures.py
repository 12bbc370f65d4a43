import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.ui.figures import amount, change, count, dollars, error, plain, plural, rate, ratio, share, short_path


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "-"),
        (0, "0"),
        (950, "950"),
        (999.6, "1.00k"),
        (12_345, "12.3k"),
        (999_949, "999.9k"),
        (999_960, "1.00M"),
        (1_234_567, "1.23M"),
        (18_468_000, "18.5M"),
        (2.5e9, "2.50G"),
        (-1500, "-1.50k"),
    ],
)
def test_amounts_are_written_in_few_digits(value: float | None, written: str) -> None:
    assert amount(value) == written


@given(st.floats(0, 1e12))
def test_an_amount_is_short_and_within_one_percent(value: float) -> None:
    written = amount(value)
    assert len(written) <= 7
    factor = {"k": 1e3, "M": 1e6, "G": 1e9}.get(written[-1], 1)
    assert float(written.rstrip("kMG")) * factor == pytest.approx(value, rel=0.01, abs=0.5)


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_a_larger_amount_is_never_written_as_a_smaller_one(one: float, other: float) -> None:
    def read(written: str) -> float:
        return float(written.rstrip("kMG")) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(written[-1], 1)

    low, high = sorted((one, other))
    assert read(amount(low)) <= read(amount(high))


def test_a_change_never_prints_a_signed_zero() -> None:
    assert [change(value) for value in (0.873, 1.01, 1.0, 0.99999, 1.00001, None)] == [
        "-12.7 %",
        "+1.0 %",
        "0.0 %",
        "0.0 %",
        "0.0 %",
        "-",
    ]


def test_figures_that_do_not_apply_are_a_dash_everywhere() -> None:
    assert {
        amount(None),
        count(None),
        dollars(None),
        ratio(None),
        change(None),
        rate(None),
        error(None),
        share(None, 1),
    } == {"-"}
    assert share(3, 0) == "-"


def test_small_sums_of_money_keep_their_digits() -> None:
    assert [dollars(value) for value in (-0.00001, 0.00001, -0.0312)] == ["$0.00", "$0.00", "-$0.0312"]
    assert [dollars(value) for value in (0, 0.0312, 0.5, 12.345, 1234.5)] == [
        "$0.00",
        "$0.0312",
        "$0.50",
        "$12.35",
        "$1,234.50",
    ]


def test_words_agree_with_their_number() -> None:
    assert [plural(1, "session"), plural(0, "session"), plural(1200, "entry", "entries")] == [
        "1 session",
        "0 sessions",
        "1,200 entries",
    ]


@given(st.text())
def test_plain_text_holds_nothing_that_steers_a_terminal(text: str) -> None:
    assert all(letter.isprintable() for letter in plain(text))


def test_an_escape_sequence_in_a_file_name_is_shown_and_not_obeyed() -> None:
    assert plain("a\x1b[31mb\u202ec\nd") == "a?[31mb?c d"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/somebody/projects/a-shop-of-parcels/src/cart/total.py", ".../src/cart/total.py"),
        (r"C:\Users\somebody\projects\a-shop-of-parcels\src\total.py", r"...\a-shop-of-parcels\src\total.py"),
        ("/home/me/shop/src/cart.py", "/home/me/shop/src/cart.py"),
        ("projects/of/somebody/a-shop-of-parcels/src/cart/total.py",) * 2,
        ("/" + 50 * "x",) * 2,
    ],
)
def test_a_long_absolute_path_is_shown_by_its_last_parts(path: str, shown: str) -> None:
    assert short_path(path) == shown
