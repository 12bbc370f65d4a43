"""The stability file of the seed design on the disk. Its form is in `policy.tiers.stability_file`."""

import contextlib
import os
from pathlib import Path


def read_stability(path: Path) -> str:
    """The text of the file; "" for a missing or unreadable file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def write_stability(path: Path, text: str) -> bool:
    """Write the file, whole or not at all. Returns whether the file was written: a failure never fails a prompt."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        return False
    return True
