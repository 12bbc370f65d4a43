"""Effect of a write or edit call on a file, derived from its arguments and the file's shown text.

An edit whose place is uncertain leaves the file unknown: then no marker may stand for earlier text of the file.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from pagein.model.fields import Row, text
from pagein.model.json_text import encode_json
from pagein.model.messages import FileAccess, ToolCall
from pagein.model.names import ContentHash
from pagein.model.read_events import FileWrite, LineCopy
from pagein.model.spans import NO_LINES
from pagein.policy.clients.client_reads import is_plain
from pagein.policy.clients.edit_arguments import UPDATE, edits_in_patch, edits_in_row
from pagein.policy.clients.profile import Profile, arguments_of, patch_body
from pagein.policy.reads.knowledge import PathKnown
from pagein.policy.reads.line_diff import changes
from pagein.policy.reads.own_writes import edit_event, follow_edit, write_event
from pagein.policy.reads.text_edit import TextEdit

_CONTENT: Final = ("content", "contents", "file_text", "text")
_ADD: Final = "*** Add File: "
_MOVE: Final = "*** Move to: "


@dataclass(frozen=True, slots=True)
class FileChange:
    """The file after a call, and the model's knowledge from making the change.

    ending: the line end behind the text, for clients whose reads do not count the empty line after it.
    """

    text: str
    event: FileWrite
    ending: str = ""


def file_change(
    profile: Profile,
    call: ToolCall,
    access: FileAccess,
    key: str,
    *,
    before: str | None,
    known: PathKnown,
    fetch: Callable[[ContentHash], bytes | None],
) -> FileChange | None:
    """Return the effect of a successful call on the file known by `key`; None if uncertain.

    before: the file as far as it was shown. fetch: returns the text of a version.
    """
    row = arguments_of(call.arguments)
    body = patch_body(row)
    if access.op == "write" and body is None:
        return _change_of_write(profile, row, key)
    if access.op != "edit" or before is None:
        return None
    edits = list(edits_in_patch(body, access.path) if body is not None else edits_in_row(row))
    after = _apply_edits(before, edits, whole_lines=body is not None)
    if after is None or not is_plain(after):
        return None
    if len(edits) == 1 and body is None:
        event = edit_event(key, after, edits[0], known, before=before)
        return None if event is None else FileChange(after, follow_edit(event, before, known, fetch))
    copies = tuple(_copies(before, after))
    version = ContentHash.of(after.encode())
    made = FileWrite(key, version, after.count("\n") + 1, NO_LINES, copies)
    return FileChange(after, follow_edit(made, before, known, fetch))


def added_file(arguments: str, path: str) -> str | None:
    """Return the whole text of a new file in a patch; None for any other call.

    arguments: JSON text. path: of the file, as the patch names it.
    """
    body = patch_body(arguments_of(arguments))
    lines = [] if body is None else body.split("\n")
    heads = [place for place, line in enumerate(lines) if line == f"{_ADD}{path}"]
    if len(heads) != 1:
        return None
    added = list(takewhile(lambda line: line.startswith("+"), lines[heads[0] + 1 :]))
    text = "".join(f"{line[1:]}\n" for line in added)
    return text if added and is_plain(text) else None


def patch_moves(arguments: str) -> dict[str, str]:
    """Return the files moved by a patch, with their new paths as in the patch."""
    body = patch_body(arguments_of(arguments))
    found: dict[str, str] = {}
    source = ""
    for line in () if body is None else body.split("\n"):
        if line.startswith(_MOVE) and source:
            found[source] = line.removeprefix(_MOVE).strip()
        elif line.startswith("*** "):
            source = line.removeprefix(UPDATE).strip() if line.startswith(UPDATE) else ""
    return found


def without_moves(arguments: str) -> str:
    """Return the arguments of a patch of the same files without moves."""
    body = patch_body(arguments_of(arguments)) or ""
    lines = (line for line in body.split("\n") if not line.startswith(_MOVE))
    return encode_json({"input": "\n".join(lines)}).decode()


def _change_of_write(profile: Profile, row: Row, key: str) -> FileChange | None:
    content = text(row, *_CONTENT)
    if content is None or not is_plain(content):
        return None
    ending = "\n" if not profile.counts_last and content.endswith("\n") else ""
    shown = content.removesuffix(ending)  # its reads do not count the empty line after it
    return FileChange(shown, write_event(key, shown), ending)


def _apply_edits(before: str, edits: Sequence[TextEdit], *, whole_lines: bool) -> str | None:
    """Return the text after some replacements; None for a replacement with no place or several."""
    if not edits:
        return None
    frame = "\n" if whole_lines else ""
    now = f"{frame}{before}{frame}"
    for edit in edits:
        old = f"{frame}{edit.old}"
        places = now.count(old) if edit.old else 0
        if whole_lines and places == 1 and now.find(old, now.find(old) + 1) >= 0:
            places = 2  # a second place that shares a line with the first
        if places == 0 or (places > 1 and not edit.everywhere):
            return None
        now = now.replace(old, f"{frame}{edit.new}")
    return now[len(frame) : len(now) - len(frame)] if frame else now


def _copies(before: str, after: str) -> Iterable[LineCopy]:
    """Yield the lines that are the same before and after."""
    old, new = before.split("\n"), after.split("\n")
    base = ContentHash.of(before.encode())
    i = j = 0
    for one in changes(old, new):
        if one.i1 > i:
            yield LineCopy(base, i + 1, one.i1 - i, j + 1)
        i, j = one.i2, one.j2
    if i < len(old):
        yield LineCopy(base, i + 1, len(old) - i, j + 1)
