"""Number formats for people, the same in the terminal, in the page and in the docs.

Only ASCII, so that a table survives every terminal and every pipe.
"""

import re

ABSENT = "-"
_ENDS_OF_PATH = re.compile(r"(?:/|[A-Za-z]:[\\/]).*?((?:[\\/][^\\/]+){1,3})", re.DOTALL)
_LONGEST_PATH = 40
# Lower limit of each letter: rounding never prints 1000 of the smaller unit.
_STEPS = ((999.95e6, 1e9, "G"), (999.95e3, 1e6, "M"), (999.5, 1e3, "k"))


def amount(value: float | None) -> str:
    """Format tokens or BIT in three or four digits: 950, 12.3k, 1.23M. `-` for a figure that does not apply."""
    if value is None:
        return ABSENT
    for least, size, letter in _STEPS:
        if abs(value) >= least:
            scaled = value / size
            return f"{scaled:.{_decimals(scaled)}f}{letter}"
    return f"{value:.0f}"


def _decimals(scaled: float) -> int:
    return 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 999.95 else 0  # noqa: PLR2004 - digits, not meaning


def count(value: float | None) -> str:
    """Format a whole number with separated thousands: 12,345. `-` for a figure that does not apply."""
    return ABSENT if value is None else f"{value:,.0f}"


def dollars(value: float | None) -> str:
    """Format US dollars: $12.34, and more digits below ten cents. `-` for prices without a currency."""
    if value is None:
        return ABSENT
    size = round(abs(value), 4)
    shown = f"${size:,.2f}" if size >= 0.1 or size == 0 else f"${size:.4f}"  # noqa: PLR2004 - ten cents
    return f"-{shown}" if value < 0 < size else shown


def ratio(value: float | None) -> str:
    """Format a ratio in three decimals, because smaller differences are noise: 0.873."""
    return ABSENT if value is None else f"{value:.3f}"


def change(value: float | None) -> str:
    """Format a ratio as a change: 0.873 is -12.7 %, 1.01 is +1.0 %, 1 is 0.0 %."""
    if value is None:
        return ABSENT
    percent = round((value - 1) * 100, 1)
    return f"{percent:+.1f} %" if percent else "0.0 %"


def share(part: float | None, whole: float | None) -> str:
    """Format a part of a whole in percent: 27 %. `-` of nothing."""
    return ABSENT if part is None or not whole else f"{100 * part / whole:.0f} %"


def rate(value: float | None) -> str:
    """Format a rate per hundred calls: 1.08."""
    return ABSENT if value is None else f"{value:.2f}"


def error(value: float | None) -> str:
    """Format a signed relative error in percent: +0.4 %."""
    return ABSENT if value is None else f"{100 * value:+.1f} %"


def plural(number: int, thing: str, things: str | None = None) -> str:
    """Format a number with its noun: 1 session, 12 sessions."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def plain(text: str) -> str:
    """Return foreign text (a file name, an id, a title) without the control characters that would steer a terminal."""
    if text.isprintable():
        return text
    return "".join(" " if letter in "\n\t" else letter if letter.isprintable() else "?" for letter in text)


def short(text: str, most: int = 80) -> str:
    """Return a foreign name, plain and shortened to fit beside other columns."""
    name = plain(text[: most + 1])
    return name if len(name) <= most else f"{name[: most - 3]}..."


def short_path(path: str) -> str:
    """Return a long absolute path by its last parts, at most three: `.../src/cart/total.py`. Others are returned as they are."""
    found = _ENDS_OF_PATH.fullmatch(path) if len(path) > _LONGEST_PATH else None
    return path if found is None else f"...{found[1]}"
