"""What a file looks like as far as the conversation tells: lines that were shown, and stand-ins for those that nobody showed.

Such a text names a version. That it holds lines from several times does no harm: what may be said of it is only what is known
to stand in the window (`pagein.policy.reads.knowledge`), and stand-ins are known to nobody.
"""

from typing import Final

from pagein.policy.clients.line_layouts import ShownText

UNSEEN: Final = "\0never shown, line "


def path_key(path: str) -> str:
    """The name under which a file is known: the path as the call gives it, without what says nothing."""
    parts = path.replace("\\", "/").split("/")
    kept = [part for place, part in enumerate(parts) if part != "." and (part or place == 0)]
    return "/".join(kept)


def overlaid(before: str | None, shown: ShownText) -> str:
    """The file after a read of some of its lines.

    Where the read does not tell how long the file is, a line nobody showed stands behind those that it showed: no answer may then take
    them for the whole file.
    """
    lines = [] if before is None else before.split("\n")
    length = shown.total if shown.total is not None else max(len(lines), shown.last + 1)
    lines = lines[:length]
    lines += [f"{UNSEEN}{n}" for n in range(len(lines) + 1, length + 1)]
    lines[shown.first - 1 : shown.last] = shown.lines
    return "\n".join(lines)


def is_plain(text: str) -> bool:
    """Whether a text can be told in UTF-8, as files are."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
