"""Edits on lines: the lines after, the lines before, and the written lines.

The text of a file stands between two line ends here, so that an edit of whole lines can name both ends of its first line.
"""

from collections.abc import Iterator, Sequence

from pagein.policy.blame.known_states import lines_of
from pagein.policy.reads.line_diff import changes
from pagein.policy.reads.text_edit import TextEdit


def applied(lines: Sequence[str], edits: Sequence[TextEdit]) -> list[str] | None:
    """Return the lines after some edits; None for an edit with no place or several."""
    text = _framed(lines)
    for edit in edits:
        old, new = _ends(edit.old), _ends(edit.new)
        if not old or not (text.count(old) == 1 or (edit.everywhere and old in text)):
            return None
        text = text.replace(old, new)
    return _unframed(text)


def base_of(lines: Sequence[str], edits: Sequence[TextEdit]) -> list[str] | None:
    """Return the lines before the edits; None if uncertain.

    Certain are single replacements whose new text is found once.
    """
    text = _framed(lines)
    for edit in reversed(edits):
        new = _ends(edit.new)
        if edit.everywhere or not new.strip() or text.count(new) != 1:
            return None
        text = text.replace(new, _ends(edit.old))
    return _unframed(text)


def written_runs(edits: Sequence[TextEdit]) -> Iterator[list[tuple[str, bool]]]:
    """Yield the whole lines of each new text, with whether the edit wrote them. Its ends may be parts of lines."""
    for edit in edits:
        old, new = lines_of(edit.old), lines_of(edit.new)[1:-1]
        written = [False] * len(new)
        for change in changes(old, new):
            written[change.j1 : change.j2] = [True] * (change.j2 - change.j1)
        if new:
            yield list(zip(new, written, strict=True))


def _ends(text: str) -> str:
    return text.replace("\r\n", "\n")


def _framed(lines: Sequence[str]) -> str:
    return "\n".join(("", *lines, ""))


def _unframed(text: str) -> list[str]:
    return text.removeprefix("\n").removesuffix("\n").split("\n") if text.strip("\n") else []
