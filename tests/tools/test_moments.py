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
