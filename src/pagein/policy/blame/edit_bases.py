"""The text before an edit, and what an edit wrote, from its replacements alone."""

from collections.abc import Iterator, Sequence

from pagein.policy.blame.known_states import lines_of
from pagein.policy.reads.line_diff import changes
from pagein.policy.reads.own_writes import TextEdit


def base_of(lines: Sequence[str], edits: Sequence[TextEdit]) -> Sequence[str] | None:
    """Return the lines before these edits, from the lines after; None if that is not certain.

    Certain are single replacements whose new text is found once.
    """
    if not edits:
        return None
    text = "\n".join(lines)
    for edit in reversed(edits):
        new = edit.new.replace("\r\n", "\n")
        if edit.everywhere or not new or text.count(new) != 1:
            return None
        text = text.replace(new, edit.old.replace("\r\n", "\n"))
    return text.split("\n")


def written_runs(edits: Sequence[TextEdit]) -> Iterator[list[tuple[str, bool]]]:
    """Yield the whole lines of each new text, with whether the edit wrote them. Its ends may be parts of lines."""
    for edit in edits:
        new = lines_of(edit.new)[1:-1]
        old = lines_of(edit.old)
        written = [False] * len(new)
        for change in changes(old, new):
            written[change.j1 : change.j2] = [True] * (change.j2 - change.j1)
        if new:
            yield list(zip(new, written, strict=True))
