"""Insert a member into a JSON file and keep every other character: comments, order, spacing, trailing commas.

A file is never written anew from its values. What is put in is one piece of text, so taking it out again gives the file back
byte for byte.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pagein.errors import BadInput

Keys: TypeAlias = tuple[str, ...]

_TOKENS: Final = re.compile(
    r'(?P<text>"(?:\\.|[^"\\])*")|(?P<beside>//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|\s+|\ufeff)|(?P<sign>[{}\[\],:])|(?P<word>[^\s{}\[\],:"/]+)'
)


@dataclass(frozen=True, slots=True)
class TextInsert:
    """A piece of text for a place in a file, in characters from its beginning."""

    place: int
    text: str

    def applied(self, before: str) -> str:
        """Return the file's text with the piece."""
        return before[: self.place] + self.text + before[self.place :]


@dataclass(slots=True)
class _Object:
    """An object or a list of the file.

    opened: place behind its opening brace. closed: place of its closing brace. last: place behind the last token in it; None
    if it is empty. comma: whether that token is a comma. first: place of its first member.
    """

    opened: int
    closed: int = -1
    last: int | None = None
    comma: bool = False
    first: int | None = None


@dataclass(slots=True)
class _Frame:
    """An object or list under way. keys: its place; None inside a list."""

    keys: Keys | None
    found: _Object | None
    key: str = ""
    wants_key: bool = True


def parse_json(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a JSON text with comments and trailing commas; {} for a blank text. Raises BadInput."""
    bare = "".join(" " if one.lastgroup == "beside" else one[0] for one in _tokens(text))
    plain = re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', r"\1", bare)
    if not plain.strip():
        return {}
    try:
        return json.loads(plain)
    except (ValueError, RecursionError) as problem:
        raise BadInput(f"is not JSON: {problem}") from problem


def member_insert(text: str, keys: Keys, value: object, first: Mapping[str, object] | None = None) -> TextInsert:
    """Return the insertion of a new member into a JSON text. The text must not have the member yet.

    keys: names of the objects down to the member, outermost first. Objects that are missing are made.
    first: further members of a blank text's object, in front.
    Raises BadInput for a text that is no JSON object, or whose value at one of the keys is none.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    if not text.strip():
        whole = {**(first or {}), keys[0]: _within(keys[1:], value)}
        return TextInsert(len(text), _nested((), whole, "", newline) + newline)
    objects, _ = _places(text)
    depth = max((count for count in range(len(keys)) if keys[:count] in objects), default=-1)
    if depth < 0:
        raise BadInput("is no JSON object")
    found = objects[keys[:depth]]
    inside = _indentation(text, found, depth)
    member = f"{json.dumps(keys[depth])}: {_nested(keys[depth + 1 :], value, inside, newline)}"
    return _at_the_end(text, found, inside, member)


def element_insert(text: str, keys: Keys, value: object) -> TextInsert:
    """Return the insertion that ends the list at these keys with a value; a missing list is made.

    Raises BadInput as `member_insert`.
    """
    found = _places(text)[1].get(keys) if text.strip() else None
    if found is None:
        return member_insert(text, keys, [value])
    inside = _indentation(text, found, len(keys))
    newline = "\r\n" if "\r\n" in text else "\n"
    return _at_the_end(text, found, inside, _nested((), value, inside, newline))


def _at_the_end(text: str, found: _Object, inside: str, member: str) -> TextInsert:
    """Return the insertion that ends an object or list with a member."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if found.last is not None:
        return TextInsert(found.last, f"{'' if found.comma else ','}{newline}{inside}{member}")
    outside = inside[: -len(_step(text))] if inside else ""
    end = "" if text[found.opened : found.closed].strip(" \t") else f"{newline}{outside}"
    return TextInsert(found.opened, f"{newline}{inside}{member}{end}")


def value_at(value: Any, keys: Keys) -> Any:  # noqa: ANN401 - any JSON
    """Return the value at some keys; None if absent."""
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def _nested(keys: Keys, value: object, inside: str, newline: str) -> str:
    """Return the value within objects of these names, as JSON for a place with this indentation."""
    return json.dumps(_within(keys, value), indent=2, ensure_ascii=False).replace("\n", newline + inside)


def _within(keys: Keys, value: object) -> object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _tokens(text: str) -> "list[re.Match[str]]":
    found, place = [], 0
    while place < len(text):
        one = _TOKENS.match(text, place)
        if one is None:
            line = text.count("\n", 0, place) + 1
            raise BadInput(f"is not JSON: line {line} has {text[place]!r} where nothing of JSON begins so")
        found.append(one)
        place = one.end()
    return found


def _places(text: str) -> tuple[dict[Keys, _Object], dict[Keys, _Object]]:
    """Return the objects and lists of a text outside of any list, by their keys."""
    found: dict[Keys, _Object] = {}
    lists: dict[Keys, _Object] = {}
    frames = [_Frame((), None)]
    for token in _tokens(text):
        if token.lastgroup == "beside":
            continue
        sign, frame = token[0], frames[-1]
        if sign in "}]" and len(frames) > 1:
            frames.pop()
            if frame.found is not None:
                frame.found.closed = token.start()
            _end_value(frames[-1], token.end())
        elif sign in "{[":
            keys = _keys_below(frames)
            made = _Object(token.end())
            if keys is not None:
                (found if sign == "{" else lists)[keys] = made
            if frame.found is not None and frame.found.first is None:
                frame.found.first = token.start()
            frames.append(_Frame(keys if sign == "{" else None, made))
        else:
            _take(frame, token)
    if len(frames) > 1 or any(one.closed < 0 for one in found.values()):
        raise BadInput("is not JSON: it ends within an object or list")
    return found, lists


def _take(frame: _Frame, token: "re.Match[str]") -> None:
    """Take a token that neither opens nor closes anything."""
    if frame.found is None:
        return
    if token[0] == ",":
        frame.wants_key, frame.found.comma, frame.found.last = True, True, token.end()
    elif token[0] == ":":
        frame.wants_key = False
    else:
        if frame.found.first is None:
            frame.found.first = token.start()
        if frame.wants_key and token.lastgroup == "text":
            frame.key = json.loads(token[0])
        _end_value(frame, token.end())


def _end_value(frame: _Frame, place: int) -> None:
    if frame.found is not None:
        frame.found.last, frame.found.comma = place, False


def _keys_below(frames: list[_Frame]) -> Keys | None:
    """Return the keys of the value that begins here; None inside a list."""
    frame = frames[-1]
    if len(frames) == 1:
        return ()
    return None if frame.keys is None or frame.found is None else (*frame.keys, frame.key)


def _indentation(text: str, found: _Object, depth: int) -> str:
    """Return the blanks in front of the members of an object."""
    if found.first is not None:
        line = text[text.rfind("\n", 0, found.first) + 1 : found.first]
        if not line.strip():
            return line
    start = text.rfind("\n", 0, found.opened) + 1
    outer = re.match(r"[ \t]*", text[start:])
    return (outer[0] if outer and depth else "") + _step(text)


def _step(text: str) -> str:
    """Return the blanks of a file's first indented line."""
    found = re.search(r"(?m)^([ \t]+)\S", text)
    return "  " if found is None else found[1]
