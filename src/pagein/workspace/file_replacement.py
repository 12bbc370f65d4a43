"""Replace the text of a file in one step: a reader sees the old text or the new one, and never a part."""

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, text: str, mode: int) -> None:
    """Write a text, its line ends unchanged, and give the file this mode. Raises OSError."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # user-only
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
