"""Messages that are read when somebody looks at them: of a long session most never are."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from pagein.model.messages import Message

_NAMES: Final = tuple(one.name for one in fields(Message))
_STORED: Final = Message.__dict__["id"]  # until it is read, this field holds what reads it


class Unread(Message):
    """A message that is read at the first look at it, and is a plain `Message` from then on. Reading may raise what its source raises."""

    __slots__ = ()

    @classmethod
    def of(cls, read: Callable[[Any], Message], place: object) -> Message:
        """The message that this gives for a place. It is asked once, or by several threads at once, and gives the same each time."""
        made = object.__new__(cls)
        _STORED.__set__(made, (read, place))
        return made

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the message has
        if name not in _NAMES:
            raise AttributeError(name)
        return getattr(_load_message(self), name)

    @property
    def id(self) -> str | None:
        """As in `Message`."""
        return _load_message(self).id

    def __eq__(self, other: object) -> bool:
        return _load_message(self) == other

    def __hash__(self) -> int:
        return hash(_load_message(self))


def _load_message(one: Message) -> Message:
    if type(one) is not Unread:  # another thread was faster
        return one
    source = _STORED.__get__(one)
    if not isinstance(source, tuple):
        return one
    read, place = source
    found = read(place)
    for name in _NAMES:
        if name != "id":
            object.__setattr__(one, name, getattr(found, name))
    object.__setattr__(one, "__class__", Message)
    _STORED.__set__(one, found.id)
    return one
