"""The exact texts that stand for known lines (specification section 9; the last two are ours, metadata v2).

Their number of lines counts as the read tool counts: a trailing newline makes one more. Where nobody can tell how many lines the
file has (a client's own read of a part of it does not say), the marker does not say either.
"""


def unchanged_marker(total: int) -> str:
    """The whole file, `total` lines, is as the model knows it."""
    return f"[readcache: unchanged, {total} lines]"


def lines_unchanged_marker(first: int, last: int, total: int | None) -> str:
    """Lines `first` to `last` are what was shown last under these numbers."""
    return f"[readcache: unchanged in lines {first}-{last}{_of(total)}]"


def inside_unchanged_marker(first: int, last: int) -> str:
    """As `unchanged_lines`, for a file that changed elsewhere."""
    return f"[readcache: unchanged in lines {first}-{last}; changes exist outside this range]"


def changed_marker(count: int, total: int) -> str:
    """The line before a diff of the whole file."""
    return f"[readcache: {count} lines changed of {total}]"


def lines_changed_marker(count: int, first: int, last: int, total: int | None) -> str:
    """The line before a diff of a range."""
    return f"[readcache: {count} lines changed in lines {first}-{last}{_of(total)}]"


def moved_marker(first: int, last: int, total: int | None, shown_as: int, *, over_again: bool = False) -> str:
    """Lines `first` to `last` are what was shown last under the numbers from `shown_as` on.

    over_again: this answer itself says something else of some of these numbers, so it says that it does not mean itself.
    """
    when = "before this answer" if over_again else "earlier"
    return (
        f"[readcache: lines {first}-{last}{_of(total)} unchanged, "
        f"shown {when} as lines {shown_as}-{shown_as + last - first}]"
    )


def _of(total: int | None) -> str:
    return "" if total is None else f" of {total}"
