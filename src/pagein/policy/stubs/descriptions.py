"""Short descriptions of files, for manifests, lists and stubs."""

from typing import Final

from pagein.policy.stubs.result_stubs import one_line

FIRST_WORDS: Final = 100
"""Maximum characters of a path in a description."""


def of_file(path: str, lines: tuple[int, int] | None = None) -> str:
    """Describe a file, or its stored lines (from 1, inclusive)."""
    part = "full file" if lines is None else f"lines {lines[0]}-{lines[1]}"
    return f"{shorten_path(path)} ({part})"


def shorten_path(path: str) -> str:
    """Return a path on one line; only the end of a long path, as the end says more."""
    plain = one_line(path)
    return plain if len(plain) <= FIRST_WORDS else f"...{plain[-(FIRST_WORDS - 3) :]}"
