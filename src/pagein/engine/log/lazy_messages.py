"""Messages that are loaded on first access: most messages of a long session are never accessed."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from pagein.model.messages import Message

_NAMES: Final = tuple(one.name for one in fields(Message))
_STORED: Final = Message.__dict__["id"]  # until loaded, this field holds the loader and its argument


class Unread(Message):
    """A message that loads on first access and then becomes a plain `Message`. Access may raise the source's errors."""

    __slots__ = ()

    @classmethod
    def of(cls, read: Callable[[Any], Message], place: object) -> Message:
        """Return a message for `read(place)` to load.

        Several threads may call `read` at once, so `read` must return the same each time.
        """
        made = object.__new__(cls)
        _STORED.__set__(made, (read, place))
        return made

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- any field of the message
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
