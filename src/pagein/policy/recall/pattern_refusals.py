"""Explanations for refused patterns: the name of the unsupported construct from another dialect."""

from typing import Final

_GROUPS: Final = (
    ("(?<=", "lookbehind (?<=...)"),
    ("(?<!", "negative lookbehind (?<!...)"),
    ("(?=", "lookahead (?=...)"),
    ("(?!", "negative lookahead (?!...)"),
    ("(?>", "atomic group (?>...)"),
    ("(?P=", "backreference (?P=name)"),
    ("(?P>", "recursion (?P>name)"),
    ("(?#", "comment (?#...)"),
    ("(?(", "condition (?(...)...)"),
    ("(?|", "branch reset (?|...)"),
    ("(?R", "recursion (?R)"),
    ("(?&", "recursion (?&name)"),
)
_ESCAPES: Final = {
    "Z": r"\Z (write \z for the end of the text)",
    "G": r"\G",
    "K": r"\K",
    "R": r"\R (write \r?\n for a line break)",
    "X": r"\X",
    "h": r"\h (write [ \t])",
    "H": r"\H (write [^ \t])",
    "u": r"\u (write \x{...})",
    "U": r"\U (write \x{...})",
    "k": r"backreference \k",
    "g": r"backreference \g",
    "N": r"\N",
}


def refusal(pattern: str, said: str) -> str:
    """Return an explanation with the name of the refused construct.

    said: the engine's own words.
    """
    kind, _, what = said.partition(": ")
    if what == "(?P":  # the engine stops reading one character too early
        what = next((start for start, _ in _GROUPS if start.startswith(what) and start in pattern), what)
    construct = next((name for start, name in _GROUPS if what.startswith(start)), None)
    if construct is None:
        construct = _construct(kind, what)
    if construct is None:
        return f"the pattern is no regular expression: {said}"
    return f"the pattern uses {construct}, which matching in linear time does not support"


def _construct(kind: str, what: str) -> str | None:
    if kind == "invalid perl operator" and what.startswith("(?"):
        return f"the flags {what}...) of which only i, m, s and U are known"
    if kind == "invalid escape sequence" and what[1:2].isdigit():
        return f"backreference {what}"
    if kind == "invalid escape sequence":
        return _ESCAPES.get(what[1:2])
    if kind == "bad repetition operator":
        return f"repetition {what} (possessive or nested)"
    if kind == "invalid repetition size":
        return f"repetition {what}, beyond a thousand or upside down"
    return None
