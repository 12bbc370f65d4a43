"""The content of files, as far as the calls of a session prove it. Pure functions.

Rules of this file
------------------
1. A content is whole if one result showed every line of the file, if a call gave the whole text, or if a call edited a
   whole content at a certain place. It holds until the session sees something else.
2. A result that shows some lines proves those lines alone. Lines of two results are never joined: the file may have
   changed in between.
3. A change without a certain result makes the content unknown.
4. A failed call and a result with text left out prove nothing.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.model.messages import FileAccess, ToolCall, ToolResult
from pagein.model.shared_map import SharedMap
from pagein.policy.clients.file_changes import added_file, file_change
from pagein.policy.clients.line_layouts import ShownText
from pagein.policy.clients.profile import Profile, reading_of
from pagein.policy.privacy.redaction import is_withheld
from pagein.policy.reads.knowledge import NOTHING

Deed: TypeAlias = Literal["read", "write", "edit", "delete"]
Known: TypeAlias = Literal["whole", "part", "name"]
Proof: TypeAlias = Literal["shown", "written", "edited", ""]

_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True)
class FileDeed:
    """What a call did to a file, or saw of it.

    path: absolute, or as the call gave it if the session's folder is unknown.
    known: how much of the content is known after the call.
    text: the whole content, or the shown lines; None if only the name is known.
    ending: the line end behind a whole content, where the client's reads do not show it.
    first: number of the first line of a part, from 1. total: lines of the file, if known.
    proof: how the content is known: `shown` by one result, `written` by the call, or `edited` on a known content.
    is_news: whether the session did not know this content of the file before.
    """

    path: str
    deed: Deed
    known: Known
    text: str | None = None
    ending: str = ""
    first: int = 1
    total: int | None = None
    proof: Proof = ""
    is_news: bool = True

    @property
    def content(self) -> str | None:
        """The known content, with its last line end."""
        return None if self.text is None else self.text + self.ending


@dataclass(frozen=True, slots=True)
class KnownText:
    """The whole content of a file: as the client's reads show it, and the line end behind it if that is known."""

    text: str
    ending: str = ""


KnownTexts: TypeAlias = SharedMap[KnownText]
"""The whole content of files, by path."""
NO_TEXTS: Final[KnownTexts] = SharedMap()


def file_deeds(
    texts: KnownTexts, profile: Profile, folder: str, call: ToolCall, result: ToolResult
) -> tuple[KnownTexts, tuple[FileDeed, ...]]:
    """Return what a call did to files, with the contents known after it.

    folder: the session's working folder, "" if unknown.
    """
    reading = reading_of(profile, call, result)
    if reading.is_failure or reading.is_repeat:
        return texts, ()
    hidden = is_withheld(result) or call.withheld is not None
    found: list[FileDeed] = []
    for access in reading.effect.accesses:
        path = absolute_path(access.path, folder)
        deed = _deed(texts.get(path), profile, call, access, path, None if hidden else reading.shown, hidden=hidden)
        if deed.known == "whole" and deed.text is not None:
            texts = texts.put(path, KnownText(deed.text, deed.ending))
        elif deed.is_news:
            texts = texts.without(path)
        found.append(deed)
    return texts, tuple(_last_of_each_path(found))


def _last_of_each_path(deeds: list[FileDeed]) -> Iterator[FileDeed]:
    """Yield one deed for each file: a call that reads and changes a file changes it."""
    by_path: dict[str, FileDeed] = {}
    for one in deeds:
        before = by_path.get(one.path)
        if before is None or one.deed != "read":
            by_path[one.path] = one
    yield from by_path.values()


def absolute_path(path: str, folder: str) -> str:
    """Return a normalised absolute path; a relative path stays relative if the folder is unknown."""
    told = path.replace("\\", "/") if _DRIVE.match(path) else path
    if told.startswith(("/", "~")) or _DRIVE.match(told) or not folder:
        return posixpath.normpath(told) if told else told
    return posixpath.normpath(posixpath.join(folder, told))


def is_absolute(path: str) -> bool:
    """Return whether a path means the same file in every folder."""
    return path.startswith("/") or _DRIVE.match(path) is not None


def _deed(
    before: KnownText | None,
    profile: Profile,
    call: ToolCall,
    access: FileAccess,
    path: str,
    shown: ShownText | None,
    *,
    hidden: bool,
) -> FileDeed:
    if access.op == "read":
        return _read(before, path, shown)
    if access.op == "delete":
        return FileDeed(path, "delete", "name")
    after = None if hidden else _text_after(before, profile, call, access, path)
    if after is None:
        return FileDeed(path, access.op, "name")
    proof: Proof = "written" if access.op == "write" else "edited"
    return FileDeed(path, access.op, "whole", after.text, after.ending, total=after.text.count("\n") + 1, proof=proof)


def _text_after(
    before: KnownText | None, profile: Profile, call: ToolCall, access: FileAccess, path: str
) -> KnownText | None:
    """Return the content of a file after a call that writes or changes it; None if that is not certain."""
    old = None if before is None else before.text
    made = file_change(profile, call, access, path, before=old, known=NOTHING.of(path), fetch=lambda _: None)
    if made is not None:
        return KnownText(made.text, made.ending or ("" if before is None or access.op == "write" else before.ending))
    added = added_file(call.arguments, access.path) if access.op == "write" else None
    if added is None:
        return None
    return KnownText(added) if profile.counts_last else KnownText(added.removesuffix("\n"), "\n")


def _read(before: KnownText | None, path: str, shown: ShownText | None) -> FileDeed:
    if shown is None:
        return FileDeed(path, "read", "name", is_news=False)
    text = "\n".join(shown.lines)
    if shown.first == 1 and shown.total is not None and shown.last >= shown.total:
        is_known = before is not None and text == before.text
        ending = before.ending if before is not None and is_known else ""
        return FileDeed(path, "read", "whole", text, ending, total=shown.total, proof="shown", is_news=not is_known)
    if before is not None:
        lines = before.text.split("\n")
        if tuple(lines[shown.first - 1 : shown.last]) == shown.lines and shown.total in (None, len(lines)):
            return FileDeed(
                path, "read", "whole", before.text, before.ending, total=len(lines), proof="shown", is_news=False
            )
    return FileDeed(path, "read", "part", text, first=shown.first, total=shown.total, proof="shown")
