r"""Translate an expression of RE2 for ripgrep, so that ripgrep finds every line of RE2.

ripgrep only chooses files; RE2 then finds the places. So the translation may match more than RE2, never less.

Rules of this file
------------------
1. What both dialects read alike is kept. Classes such as `\d`, ASCII in RE2 and Unicode in Rust, are spelled out.
2. A `$` also takes a carriage return at the end of the line, and a `^` a byte order mark at its beginning: RE2 gets the text without.
3. Anything else (flags within the expression, Unicode properties, ends of the text, set operations in classes) gives
   None: then RE2 looks through all files.
"""

import re
from typing import Final

_CLASSES: Final = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_ENDS: Final = {"^": r"(?:^\x{FEFF}?)", "$": r"(?:\r?$)"}
_CONTROLS: Final = frozenset("aftnrv")
_HEX: Final = re.compile(r"\\x(?:[0-9A-Fa-f]{2}|\{[0-9A-Fa-f]{1,6}\})")
_GROUP: Final = re.compile(r"\(\?(?::|i:|s:|is:|P<\w+>)")
_REPEAT: Final = re.compile(r"\{\d+(?:,\d*)?\}")
_POSIX: Final = re.compile(r"\[:[a-z]+:\]")
_OPERATIONS: Final = ("&&", "--", "~~")


class _DialectDoubt(Exception):
    """Something in the expression is not known to mean the same in both dialects."""


def rust_pattern(expression: str) -> str | None:
    """Return the expression for ripgrep, or None for an expression beyond ripgrep. RE2 must accept the expression."""
    try:
        return _translate(expression)
    except _DialectDoubt:
        return None


def _translate(expression: str) -> str:
    flags = re.match(r"\(\?([ims]+)\)", expression)
    out, at = ([f"(?{flags[1].replace('m', '')})"] if flags and flags[1] != "m" else []), flags.end() if flags else 0
    while at < len(expression):
        piece, at = _piece(expression, at)
        out.append(piece)
    return "".join(out)


def _piece(expression: str, at: int) -> tuple[str, int]:
    """Return the translation of the part from a place on, and the next place."""
    character = expression[at]
    if character == "\\":
        return _escape(expression, at)
    if character == "[":
        return _bracket(expression, at)
    if character in _ENDS:
        return _ENDS[character], at + 1
    if character == "(" and expression.startswith("(?", at):
        return _match(_GROUP, expression, at)
    if character == "{":
        return _match(_REPEAT, expression, at)
    if character == "\n":
        raise _DialectDoubt
    return character, at + 1


def _escape(expression: str, at: int) -> tuple[str, int]:
    letter = expression[at + 1 : at + 2]
    if letter == "x":
        return _match(_HEX, expression, at)
    if letter.lower() in _CLASSES and letter:
        if letter.islower():
            return f"[{_CLASSES[letter]}]", at + 2
        return f"(?-i:[^{_CLASSES[letter.lower()]}])", at + 2
    if letter == "b":
        return r"(?-u:\b)", at + 2
    return _plain_escape(letter), at + 2


def _plain_escape(letter: str) -> str:
    """Return the translation of an escaped control character or punctuation."""
    if letter in _CONTROLS and letter not in ("", "n"):
        return f"\\{letter}"
    if letter.isalnum() or not letter.isascii() or not letter or letter == "\n":
        raise _DialectDoubt
    return f"\\x{ord(letter):02x}"


def _bracket(expression: str, at: int) -> tuple[str, int]:
    """Return the translation of a class, and the place behind it."""
    negated = expression.startswith("[^", at)
    out, place = ["[^" if negated else "["], at + 1 + negated
    first = place
    while place < len(expression):
        if expression[place] == "]" and place > first:
            return "".join(out) + "]", place + 1
        piece, after = _member(expression, place)
        # what a negated class leaves out, RE2 and Rust may fold differently
        if negated and not (after == place + 1 and expression[place].isascii()):
            raise _DialectDoubt
        out.append(piece)
        place = after
    raise _DialectDoubt


def _member(expression: str, at: int) -> tuple[str, int]:
    """Return the translation of a member of a class, and the place behind it."""
    character = expression[at]
    if character == "\\":
        return _escaped_member(expression, at)
    posix = _POSIX.match(expression, at)
    if posix is not None:
        return posix[0], posix.end()
    if expression.startswith(_OPERATIONS, at) or character == "\n":
        raise _DialectDoubt
    return f"\\x{ord(character):02x}" if character in "&~^[]" else character, at + 1


def _escaped_member(expression: str, at: int) -> tuple[str, int]:
    letter = expression[at + 1 : at + 2]
    if letter == "x":
        return _match(_HEX, expression, at)
    if letter in _CLASSES and letter:
        return _CLASSES[letter], at + 2
    return _plain_escape(letter), at + 2


def _match(known: re.Pattern[str], expression: str, at: int) -> tuple[str, int]:
    found = known.match(expression, at)
    if found is None:
        raise _DialectDoubt
    return found[0], found.end()
