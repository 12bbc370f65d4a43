"""Compare a look at a followed file with the texts known from the calls of sessions: which changes are new? Pure functions.

Rules of this file
------------------
1. A text that a call stated since the last look is explained by the call. Line ends make no difference: clients show texts in
   different ways.
2. Every other text that differs from the text before is a change that no call explains; but if a call changed the file in a
   way that did not prove its text, it is only what was seen.
3. The file's present text is journaled last, also if an old text came back.
4. A file changes before its call is journaled. So a text that contains a call's edit is journaled after the call.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from pagein.model.memory_notes import SightingOp

_AFTER: Final = 0.001
"""Seconds between the newest version and a look that counts as newer, because calls are journaled after their effect."""


@dataclass(frozen=True, slots=True)
class FileLook:
    """A file as it was found.

    at: time of the last change of its content or name, seconds since 1970.
    text: None for a file whose text is not stored.
    digest, size: of its bytes.
    """

    at: float
    text: str | None
    digest: str
    size: int

    @property
    def key(self) -> str:
        """Identity of the content, apart from line ends."""
        return f"bytes:{self.digest}" if self.text is None else key_of(self.text)


@dataclass(frozen=True, slots=True)
class ToldEdit:
    """A call that changed the file, and does not prove its text.

    at: time of its version. key: of the likely text. added: lines of that text that the text before did not have.
    """

    at: float
    key: str
    added: Collection[str]

    def is_in(self, look: FileLook) -> bool:
        """Whether a text contains the call's edit."""
        if look.key == self.key:
            return True
        return look.text is not None and bool(self.added) and set(self.added) <= set(look.text.splitlines())


@dataclass(frozen=True, slots=True)
class ToldContent:
    """What is known of a file without looking.

    shown: key of the content at the last look; None before the first look.
    texts: keys of the whole texts that calls told since then.
    newest: key of the newest content; None if it is not known whole. newest_at: time of the version that tells it.
    is_open: whether a call changed the file since then, and its text after that is not proved.
    edits: such calls whose text is likely.
    """

    shown: str | None
    texts: Collection[str]
    newest: str | None
    newest_at: float
    is_open: bool
    edits: Sequence[ToldEdit] = ()


def key_of(text: str) -> str:
    """Return the identity of a text, apart from line ends."""
    plain = text.replace("\r\n", "\n").removesuffix("\n")
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def untold(told: ToldContent, looks: Sequence[FileLook]) -> list[tuple[SightingOp, FileLook]]:
    """Return the looks to be journaled, in order. looks: in the order of their times; the last one is how the file is now."""
    op: Literal["seen", "change"] = "seen" if told.is_open or (told.shown is None and told.newest is None) else "change"
    found: list[tuple[SightingOp, FileLook]] = []
    before, newest, placed_at = told.shown, told.newest, -_AFTER
    for look in looks[:-1]:
        if look.key not in (before, told.newest, *told.texts):
            at = _time_of(look, told.edits)
            placed_at = at if at > placed_at else placed_at + _AFTER
            found.append((op, replace(look, at=placed_at)))
            newest = look.key if placed_at > told.newest_at else newest
        before = look.key
    if looks and looks[-1].key != newest:
        last, latest = looks[-1], max(told.newest_at, placed_at)
        found.append((op, last if last.at > latest else replace(last, at=latest + _AFTER)))
    return found


def _time_of(look: FileLook, edits: Sequence[ToldEdit]) -> float:
    """Return the time of a look, after the edits that it shows."""
    return max([look.at, *(one.at + _AFTER for one in edits if one.at >= look.at and one.is_in(look))])
