"""Ask ripgrep for the files with a matching line, if ripgrep is installed.

Rules of this file
------------------
1. ripgrep gets the names of the files and looks at no others: which files may be read is decided before (law 9).
2. Nothing of the user's own configuration applies: no configuration file, no ignore files, no guess of encodings.
3. Whatever fails, the answer is None, and pagein's own engine looks through the files.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Final

from pagein.errors import AbortedOperation
from pagein.policy.recall.pattern_search import Pattern
from pagein.policy.recall.rust_patterns import rust_pattern
from pagein.ports import Signal

_OPTIONS: Final = (
    "--no-config",
    "--no-ignore",
    "--hidden",
    "--text",
    "--encoding=none",
    "--no-messages",
    "--files-with-matches",
    "--null",
    "--color=never",
)
_ARGUMENT_BYTES: Final = 100_000
"""Bytes of file names in one call; the least limit of a system is above this."""
_NO_MATCH: Final = 1
_POLL: Final = 0.05


def ripgrep_path() -> str | None:
    """Return the absolute path of ripgrep, or None if absent."""
    found = shutil.which("rg")
    return found if found is not None and os.path.isabs(found) else None  # noqa: PTH117  paths stay text here


def files_with_matches(
    program: str, pattern: Pattern, files: Sequence[str], ends: float, signal: Signal | None = None
) -> frozenset[str] | None:
    """Return the files with a possible match among absolute paths; None without an answer of ripgrep.

    No file with a match is missing, others may be among them.

    program: path of ripgrep.
    ends: time of the monotonic clock after which the answer is None.

    Raises AbortedOperation once the signal is set.
    """
    arguments = _pattern_arguments(pattern)
    if arguments is None:
        return None
    found: set[str] = set()
    try:
        for batch in _batches(files):
            listed = _run([program, *_OPTIONS, *arguments, "--", *batch], ends, signal)
            if listed is None:
                return None
            found.update(os.fsdecode(name) for name in listed.split(b"\0") if name)
    except (OSError, ValueError):  # no such program any more, or a pattern that no argument can hold
        return None
    return frozenset(found)


def _pattern_arguments(pattern: Pattern) -> list[str] | None:
    if pattern.expression is None:
        # several lines are several alternatives: that finds more files, not fewer
        return ["--fixed-strings", f"--regexp={pattern.literal}".replace("\r\n", "\n")]
    translated = rust_pattern(pattern.expression)
    return None if translated is None else [f"--regexp={translated}"]


def _batches(files: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for file in files:
        length = len(os.fsencode(file)) + 1
        if batch and size + length > _ARGUMENT_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += length
    if batch:
        yield batch


def _run(command: Sequence[str], ends: float, signal: Signal | None) -> bytes | None:
    """Return the output of a run, or None for a failed or late one. Raises OSError, ValueError and AbortedOperation."""
    with subprocess.Popen(  # noqa: S603  the program is ripgrep, and its arguments are no shell's
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            while True:
                try:
                    output, _ = process.communicate(timeout=_POLL)
                except subprocess.TimeoutExpired:
                    if signal is not None and signal.is_set():
                        raise AbortedOperation("Operation aborted") from None
                    if time.monotonic() > ends:
                        return None
                else:
                    return output if process.returncode in (0, _NO_MATCH) else None
        finally:
            process.kill()
