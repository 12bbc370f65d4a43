"""Moments as people and models write them."""

import re
from datetime import datetime, timedelta
from datetime import time as Time  # noqa: N812 - a time of day
from typing import Final

from pagein.errors import BadSetting

_AGO: Final = re.compile(r"([0-9]{1,9})\s*(min|(?:second|minute|hour|day|week)s?|[smhdw])(?:\s+ago)?")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

_DAYS: Final = {"today": 0, "yesterday": 1}


def moment(text: str, now: float) -> float:
    """Return a moment in seconds since 1970: a date with or without time (local without a zone), `2h` or `2 hours ago`, the last midnight (`today`), the
    one before (`yesterday`), or the seconds themselves.

    Raises BadSetting.
    """
    if ago := _AGO.fullmatch(text.strip()):
        return now - int(ago[1]) * _SECONDS[ago[2][0]]  # the first letter tells the unit
    if (days := _DAYS.get(text.strip().lower())) is not None:
        return datetime.combine(datetime.fromtimestamp(now).date() - timedelta(days), Time.min).timestamp()  # noqa: DTZ006 - local
    try:
        return float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise BadSetting(
            f"not a time: {text[:40]!r}; write 2026-11-21, 2026-11-21T10:00, today, yesterday, or 30min, 2h, 3d, 1w ago"
        ) from None
