"""Replacements that the arguments of an edit call ask for."""

from collections.abc import Iterator
from typing import Final

from pagein.model.fields import Row, objects, text
from pagein.policy.clients.profile import arguments_of, patch_body
from pagein.policy.reads.text_edit import TextEdit

UPDATE: Final = "*** Update File: "
"""What stands before the name of a changed file in a patch."""
_NEW: Final = ("new_string", "newString", "newText", "new_str", "new_text")
_OLD: Final = ("old_string", "oldString", "oldText", "old_str", "old_text")
_EVERYWHERE: Final = ("replace_all", "replaceAll")


def text_edits(arguments: str, path: str) -> tuple[TextEdit, ...]:
    """Return the replacements that an edit call asks for, in order. Replacements of whole lines begin with a line end.

    arguments: JSON text. path: of the file, absolute; a patch may name its end alone.
    """
    row = arguments_of(arguments)
    body = patch_body(row)
    if body is None:
        return tuple(edits_in_row(row))
    names = (line.removeprefix(UPDATE).strip() for line in body.split("\n") if line.startswith(UPDATE))
    given = next((name for name in names if f"/{path}".endswith(f"/{name}")), path)
    return tuple(TextEdit(f"\n{edit.old}", f"\n{edit.new}") for edit in edits_in_patch(body, given))


def edits_in_row(row: Row) -> Iterator[TextEdit]:
    """Yield the replacements in the arguments of a call that is no patch."""
    for one in objects(row.get("edits")) if isinstance(row.get("edits"), list) else (row,):
        old, new = text(one, *_OLD), text(one, *_NEW)
        yield TextEdit(old or "", new or "", any(one.get(name) is True for name in _EVERYWHERE))


def edits_in_patch(body: str, path: str) -> Iterator[TextEdit]:
    """Yield the hunks of a patch that update this file, as replacements of whole lines with their ends."""
    is_here = False
    old: list[str] = []
    new: list[str] = []
    for line in (*body.split("\n"), "*** End Patch"):
        if line.startswith(("@@", "*** ")):
            if old or new:
                yield TextEdit("".join(old), "".join(new))
            old, new = [], []
            if line.startswith("*** ") and not line.startswith("*** End of File"):
                is_here = line.startswith(UPDATE) and line[len(UPDATE) :].strip() == path
        elif is_here:
            if not line.startswith("+"):
                old.append(f"{line[1:]}\n")
            if not line.startswith("-"):
                new.append(f"{line[1:]}\n")
