"""Convert the offset and limit of a read into line numbers of the file."""

import math

from pagein.errors import BadInput, CallerError
from pagein.model.documents import LocatedFile
from pagein.policy.reads.baseline import number
from pagein.ports import Files


def line_range(located: LocatedFile, total: int) -> tuple[int, int] | None:
    """Return the first and last line of a read, clamped to a file of `total` lines.

    None if offset or limit is not a positive whole number: then there is no range for a claim.
    """
    first, count = located.offset, located.limit
    if not (first is None or _is_positive(first)) or not (count is None or _is_positive(count)):
        return None
    start = 1 if first is None else int(first)
    return start, total if count is None else min(start + int(count) - 1, total)


def refresh_range(located: LocatedFile, files: Files) -> tuple[int, int] | None:
    """Return the first and last line of a refresh; None for the whole file.

    For an unreadable file the numbers are used as given. Raises BadInput if they are not positive.
    """
    if located.offset is None and located.limit is None:
        return None
    first = _positive(1 if located.offset is None else located.offset, "offset")
    last = None if located.limit is None else first + _positive(located.limit, "limit") - 1
    try:
        total = len(files.read(located).lines)
    except CallerError:
        return None if last is None else (first, last)
    if first > total:
        raise BadInput(f"Offset {first} is beyond end of file ({total} lines total)")
    last = total if last is None else min(last, total)
    return None if (first, last) == (1, total) else (first, last)


def _positive(value: float, name: str) -> int:
    if not _is_positive(value):
        raise BadInput(f'Invalid {name} "{number(value)}". {name.capitalize()} must be a positive integer.')
    return int(value)


def _is_positive(value: float) -> bool:
    return math.isfinite(value) and value == int(value) and value >= 1
