"""Reconstruction of a file from the conversation: shown lines, and placeholders for unseen lines.

Such a text names a version. It may hold lines from several times, which does no harm: an answer may state only lines
known to be in the window (`pagein.policy.reads.knowledge`), and placeholders are never known.
"""

from typing import Final

from pagein.policy.clients.line_layouts import ShownText

UNSEEN: Final = "\0never shown, line "


def path_key(path: str) -> str:
    """Return the normalised path of a file, without empty and `.` parts."""
    parts = path.replace("\\", "/").split("/")
    kept = [part for place, part in enumerate(parts) if part != "." and (part or place == 0)]
    return "/".join(kept)


def overlaid(before: str | None, shown: ShownText) -> str:
    """Return the file's text after a read of some of its lines.

    Where the read does not state the length of the file, an unseen line follows the shown lines, so that no answer may
    mistake them for the whole file.
    """
    lines = [] if before is None else before.split("\n")
    length = shown.total if shown.total is not None else max(len(lines), shown.last + 1)
    lines = lines[:length]
    lines += [f"{UNSEEN}{n}" for n in range(len(lines) + 1, length + 1)]
    lines[shown.first - 1 : shown.last] = shown.lines
    return "\n".join(lines)


def is_plain(text: str) -> bool:
    """Return whether a text can be encoded in UTF-8, as files are."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
