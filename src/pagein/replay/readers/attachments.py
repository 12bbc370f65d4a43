"""The attachments inserted by Claude Code beside the conversation, as the text shown to the model."""

from collections.abc import Callable
from typing import Final

from pagein.model.messages import Text
from pagein.replay.readers.blocks import flat
from pagein.replay.readers.row_fields import Row, json_text, lines_of, object_at, text

_FOR_PEOPLE: Final = frozenset(
    ("command_permissions", "hook_system_message", "hook_cancelled", "hook_non_blocking_error")
)


def attachment_text(row: Row) -> Text | None:
    """Return the text of an attachment; None for an empty attachment and for notes to people.

    The wording around the content is close to the client's, not equal: it serves to be counted.
    """
    kind = text(row, "type") or "attachment"
    if kind in _FOR_PEOPLE:
        return None
    words = _words(kind, row)
    return Text(words, kind) if words else None


def _words(kind: str, row: Row) -> str:
    told = _WORDS.get(kind)
    if told is not None:
        return told(row, text(row, "filename", "path", "displayPath") or "")
    for added in ("addedBlocks", "addedLines", "addedNames"):
        if row.get(added):
            return lines_of(row[added])
    return lines_of(row.get("content"))


def _edit_text(row: Row, path: str) -> str:
    note = f"Note: {path} was modified, either by the user or by a linter. Lines changed (with line numbers):\n"
    return note + (text(row, "snippet") or "")


def _memory(row: Row, path: str) -> str:
    return f"Contents of {path}:\n\n{text(object_at(row, 'content'), 'content') or ''}"


def _file(row: Row, path: str) -> str:
    content = object_at(row, "content")
    words = text(object_at(content, "file"), "content") or text(content, "content") or lines_of(row.get("content"))
    return f"Called the Read tool on {path}. Result:\n{words}"


def _queue_text(row: Row, _: str) -> str:
    return flat(row.get("prompt"))[0]


def _tasks(row: Row, _: str) -> str:
    return f"Task reminder: {json_text(row['content'])}" if row.get("content") else ""


def _reference(row: Row, _: str) -> str:
    return json_text({key: value for key, value in row.items() if key != "type"})


_WORDS: Final[dict[str, Callable[[Row, str], str]]] = {
    "edited_text_file": _edit_text,
    "nested_memory": _memory,
    "file": _file,
    "queued_command": _queue_text,
    "task_reminder": _tasks,
    "compact_file_reference": _reference,
}
