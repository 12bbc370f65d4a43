"""Kinds of settings: the accepted values, and how to read them from a file or from the environment."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Key:
    """One setting.

    takes: accepted values, in words. default: value if no layer sets the key. says: meaning, for people.
    own: only the user may set it, not a workspace's file.
    parse_value: parse a value from a file. parse_text: parse a text from the environment. Both raise TypeError or ValueError.
    """

    name: str
    takes: str
    default: object
    says: str
    parse_value: Callable[[object], object]
    parse_text: Callable[[str], object]
    own: bool = False

    @property
    def variable(self) -> str:
        """Name of the environment variable."""
        return f"PAGEIN_{self.name.upper()}"


_YES: Final = frozenset({"1", "yes", "on", "true"})
_NO: Final = frozenset({"0", "no", "off", "false"})
_WHOLE: Final = re.compile(r"[0-9]{1,18}")


def flag(name: str, default: object, says: str, *, own: bool = False) -> Key:
    """Return a boolean setting."""

    def parse_value(value: object) -> object:
        if not isinstance(value, bool):
            raise TypeError
        return value

    def parse_text(text: str) -> object:
        if text.lower() not in _YES | _NO:
            raise TypeError
        return text.lower() in _YES

    return Key(name, "true or false", default, says, parse_value, parse_text, own)


def whole(name: str, default: object, says: str, *, own: bool = False) -> Key:
    """Return a setting for a whole number of 0 or more."""

    def parse_value(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise TypeError
        return value

    def parse_text(text: str) -> object:
        if not _WHOLE.fullmatch(text):
            raise TypeError
        return int(text)

    return Key(name, "a whole number of 0 or more", default, says, parse_value, parse_text, own)


def number(name: str, default: object, says: str, *, own: bool = False) -> Key:
    """Return a setting for a number."""

    def parse_value(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError
        return float(value)

    return Key(name, "a number", default, says, parse_value, float, own)


def text(name: str, default: object, says: str, *, own: bool = False) -> Key:
    """Return a setting for a text."""

    def parse_value(value: object) -> object:
        if not isinstance(value, str):
            raise TypeError
        return value

    return Key(name, "a text", default, says, parse_value, str, own)


def choice(
    name: str,
    default: str,
    among: tuple[str, ...],
    says: str,
    *,
    older: Mapping[str, str] | None = None,
    own: bool = False,
) -> Key:
    """Return a setting with a few words to choose from.

    older: words of earlier versions, each with the word that took its place. `true` and `false` stand for themselves and
        for the values of a setting that was a flag.
    """

    def parse_value(value: object) -> object:
        told = str(value).lower() if isinstance(value, bool) else value
        word = (older or {}).get(told, told) if isinstance(told, str) else told
        if word not in among:
            raise TypeError
        return word

    return Key(name, " or ".join(f'"{one}"' for one in among), default, says, parse_value, parse_value, own)


def texts(name: str, says: str, *, own: bool = False) -> Key:
    """Return a setting for a list of texts."""

    def parse_value(value: object) -> object:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise TypeError
        return tuple(value)

    def parse_text(text: str) -> object:
        return tuple(one.strip() for one in text.split(",") if one.strip())

    return Key(name, "a list of texts; in the environment with commas between", (), says, parse_value, parse_text, own)
