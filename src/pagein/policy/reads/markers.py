"""The exact texts of markers, which stand for known lines.

Their number of lines counts as the read tool counts: a trailing newline makes one more. Where the length of the file is
unknown (a client's own read of a part of it does not say), the marker does not state it.
"""


def unchanged_marker(total: int) -> str:
    """Return the marker of a whole file of `total` lines that the model knows."""
    return f"[readcache: unchanged, {total} lines]"


def lines_unchanged_marker(first: int, last: int, total: int | None) -> str:
    """Return the marker of lines equal to the lines last shown under the same numbers."""
    return f"[readcache: unchanged in lines {first}-{last}{_of(total)}]"


def inside_unchanged_marker(first: int, last: int) -> str:
    """Return the marker of unchanged lines in a file that changed elsewhere."""
    return f"[readcache: unchanged in lines {first}-{last}; changes exist outside this range]"


def changed_marker(count: int, total: int) -> str:
    """Return the line before a diff of the whole file."""
    return f"[readcache: {count} lines changed of {total}]"


def lines_changed_marker(count: int, first: int, last: int, total: int | None) -> str:
    """Return the line before a diff of a range."""
    return f"[readcache: {count} lines changed in lines {first}-{last}{_of(total)}]"


def moved_marker(first: int, last: int, total: int | None, shown_as: int, *, over_again: bool = False) -> str:
    """Return the marker of lines equal to the lines last shown from number `shown_as` on.

    over_again: this answer itself shows other text under some of these numbers, so the marker excludes this answer.
    """
    when = "before this answer" if over_again else "earlier"
    return (
        f"[readcache: lines {first}-{last}{_of(total)} unchanged, "
        f"shown {when} as lines {shown_as}-{shown_as + last - first}]"
    )


def left_out_marker(first: int, last: int, total: int) -> str:
    """Return the line for lines that an answer leaves out and says nothing about."""
    return f"[readcache: lines {first}-{last} of {total} not shown]"


def _of(total: int | None) -> str:
    return "" if total is None else f" of {total}"
