"""Types of objects, with the fields of their metadata view, and the default lock."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ObjectType:
    """The properties of a type of object.

    view: fields of the default metadata view, in order.
    locked: whether a new object of the type is locked.
    """

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
"""The properties of an unknown type, made by a later pagein or by a foreign store."""


def type_of(name: str) -> ObjectType:
    """The properties of a type, by name."""
    return TYPES.get(name, OTHER)
