"""Types of objects: what their metadata view shows, and which of them are locked (memory-system 4.2.1, 20.1, 24)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ObjectType:
    """view: the fields of the default metadata view, in order. locked: whether an object of the type is locked when made."""

    view: tuple[str, ...]
    locked: bool = False


_FILE: Final = ("id", "type", "path", "file_type", "char_count", "nickname")
_TEXT: Final = ("id", "type", "nickname", "char_count")
TYPES: Final[Mapping[str, ObjectType]] = {
    "file": ObjectType(_FILE),
    "note": ObjectType(_FILE),
    "toolcall": ObjectType(("id", "type", "tool", "args_display", "status")),
    "chat": ObjectType(("id", "type", "session_ref", "turn_count"), locked=True),
    "session": ObjectType(()),
    "user": ObjectType(_TEXT),
    "artifact": ObjectType(_TEXT),
    "system_prompt": ObjectType(_TEXT, locked=True),
}
OTHER: Final = ObjectType(_TEXT)
"""What holds for a type that a later pagein, or somebody else's store, has made."""


def type_of(name: str) -> ObjectType:
    """What is known of a type."""
    return TYPES.get(name, OTHER)
