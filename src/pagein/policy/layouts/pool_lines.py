"""The lines that show pools to a model: metadata, references, active content, and news."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from pagein.policy.pools.pool_values import PooledObject

METADATA: Final = "METADATA_POOL"
NEWS: Final = "POOL_NEWS"
LEGEND: Final = (
    "Your context is a set of objects. A result of a tool stands in the conversation as `toolcall_ref` or `object_ref`; its "
    "text is below the last `ACTIVE_CONTENT` with the same id, as long as the object is active; an earlier one with this id is "
    "out of date. METADATA_POOL lists the objects that you know. POOL_NEWS tells what changed: `- id=` lists an object, `- inactive_ref id=` says that its content "
    "has left the window, `- changed_ref id=` that its content was shown before the edits in the calls since. "
    "`activate` brings the present content of an object back, `deactivate` puts it away."
)
"""What the model is told of these lines, at the end of the system prompt."""

_PLAIN: Final = re.compile(r"[^\s\"]+")


def quoted(value: str) -> str:
    """Return a value of a line: as it is, or as a JSON string if it could be taken for something else."""
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=True)


def metadata_line(one: PooledObject) -> str:
    """Return the line of an object in the metadata pool."""
    fields = [("id", one.id), ("type", one.type), *(one.view or _usual_fields(one))]
    if one.deleted:
        fields.append(("status", "deleted"))
    line = "- " + " ".join(f"{name}={quoted(value)}" for name, value in fields if value)
    return f"{line} [unread]" if one.content == "unread" and not one.deleted else line


def _usual_fields(one: PooledObject) -> Iterator[tuple[str, str]]:
    """Yield the fields of an object for which nobody chose any."""
    if one.type == "toolcall":
        yield from (("tool", one.tool), ("status", one.status))
    yield from (("path", one.path), ("file_type", one.file_type if one.path else ""), ("nickname", one.nickname))
    if one.type != "toolcall" and one.content == "text":
        yield "char_count", str(one.chars)


def metadata_text(lines: Iterable[str]) -> str:
    """Return the metadata block; "" without lines. lines: one for each object (`metadata_line`)."""
    told = list(lines)
    return "\n".join((METADATA, *told)) if told else ""


def reference_line(call_id: str, tool: str, *, failed: bool, objects: Iterable[str] = ()) -> str:
    """Return the reference lines in place of a result. objects: further objects with the same text."""
    line = f"toolcall_ref id={quoted(call_id)} tool={quoted(tool or '?')} status={'fail' if failed else 'ok'}"
    return "\n".join((line, *(f"object_ref id={quoted(one)}" for one in objects)))


def content_text(object_id: str, content: str) -> str:
    """Return the block of an active object."""
    return f"ACTIVE_CONTENT id={quoted(object_id)}\n{content}"


def news_text(listed: Iterable[str], inactive: Iterable[str], changed: Iterable[str]) -> str:
    """Return the news at the end of a request; "" without news. listed: metadata lines."""
    lines = [
        *listed,
        *(f"- inactive_ref id={quoted(one)}" for one in inactive),
        *(f"- changed_ref id={quoted(one)}" for one in changed),
    ]
    return "\n".join((NEWS, *lines)) if lines else ""
