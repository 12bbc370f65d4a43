"""Moments as people write them."""

from datetime import datetime

import pytest

from pagein.errors import BadSetting
from pagein.tools.moments import moment


def test_today_and_yesterday_begin_at_midnight_here() -> None:
    noon = datetime(2026, 11, 24, 12, 30).timestamp()  # noqa: DTZ001 - local
    assert moment("today", noon) == datetime(2026, 11, 24).timestamp()  # noqa: DTZ001
    assert moment("Yesterday", noon) == datetime(2026, 11, 23).timestamp()  # noqa: DTZ001
    with pytest.raises(BadSetting, match="today, yesterday"):
        moment("tomorrow", noon)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30min", 1_800), ("2h ago", 7_200), ("3d ago", 259_200), ("3 days ago", 259_200), ("1 week ago", 604_800)],
)
def test_the_forms_that_tools_and_errors_name_are_taken(text: str, seconds: float) -> None:
    assert moment(text, 1_000_000.0) == 1_000_000.0 - seconds


@pytest.mark.parametrize("text", ["3 months", "1d before", "ago"])
def test_other_units_are_refused(text: str) -> None:
    with pytest.raises(BadSetting, match=r"3d, 1w ago"):
        moment(text, 1_000_000.0)
