"""The content of files, proven by the calls of a session. Pure functions.

Rules of this file
------------------
1. A content is whole if one result showed every line of the file, if a call gave the whole text, or if a call edited a
   whole content at a certain place, and its result says that the client found this very content. It holds until the
   session sees something else.
2. A result that shows some lines proves those lines alone. Lines of two results are never joined: the file may have
   changed in between.
3. A change without a certain result makes the content unknown.
4. A failed call and a result with text left out prove nothing.
5. Whatever may change files unseen puts every content in doubt: a command that does more than read, a tool of unknown effect,
   the time between two turns, a text of the client that names the file. An edit of a content in doubt gives a content that is
   likely, until the session reads the whole file.
6. An edit of a content that nothing puts in doubt is likely, too, if the client does not look whether the file is still as it
   was shown. Then the content is *trusted*: windows go on with it, and no answer takes it for proven.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from pagein.model.messages import Block, FileAccess, Message, Text, ToolCall, ToolResult
from pagein.model.shared_collections import SharedMap
from pagein.policy.clients.client_prompts import words_beside
from pagein.policy.clients.file_changes import added_file, file_change, patch_moves, without_moves
from pagein.policy.clients.line_layouts import ShownText
from pagein.policy.clients.profile import InterpretedResult, Profile, reading_of
from pagein.policy.clients.shell_changes import ShellChange, is_harmless, runs_on, shell_changes
from pagein.policy.privacy.exclusions import is_withheld
from pagein.policy.reads.knowledge import NOTHING

Deed: TypeAlias = Literal["read", "write", "edit", "delete", "move"]
Known: TypeAlias = Literal["whole", "likely", "part", "name"]
Proof: TypeAlias = Literal["shown", "written", "edited", ""]

_NO_FILES: Final = frozenset(
    [
        "peek",
        "search",
        "skill",
        "taskcreate",
        "taskget",
        "tasklist",
        "taskoutput",
        "taskupdate",
        "todoread",
        "todowrite",
        "toolsearch",
        "update_plan",
    ]
)
"""Tools of clients, and of pagein, that touch no files, in lower case."""
_OF_THE_WEB: Final = ("webfetch", "websearch", "web_fetch", "web_search")
"""Ends of the names of tools that read the web."""
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True)
class FileDeed:
    """The effect of a call on a file, or the view of the file by the call.

    path: absolute, or as the call gave it if the session's folder is unknown.
    known: how much of the content is known after the call.
    text: the whole content, or the shown lines; None if only the name is known.
    ending: the line end after a whole content, where the client's reads do not show it.
    first: number of the first line of a part, from 1. total: lines of the file, if known.
    proof: how the content is known: `shown` by one result, `written` by the call, or `edited` on a known content.
    is_news: whether the session did not know this content of the file before.
    other: of a move, the path at the other end: the old one of `move`, the new one of `delete`; "" else.
    is_end_open: whether nothing tells if the last line of a whole content ends with a line feed.
    is_trusted: whether nothing is known that may have changed the file since the session saw the content.
    shows_part: whether a result showed some lines of a content known before.
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
    other: str = ""
    is_end_open: bool = False
    is_trusted: bool = False
    shows_part: bool = False

    @property
    def is_whole_or_trusted(self) -> bool:
        """Whether the content is whole, or taken for it by all that a session can see."""
        return self.known == "whole" or self.is_trusted

    @property
    def content(self) -> str | None:
        """The known content, with its last line end."""
        return None if self.text is None else self.text + self.ending


@dataclass(frozen=True, slots=True)
class KnownText:
    """The whole content of a file.

    text: as the client's reads show it. ending: the line end behind it, if that is known.
    doubts: number of doubts when the session saw it.
    is_likely: whether it was edited since without a proof of what was edited.
    is_trusted: whether it was not in doubt at any of these edits.
    is_seen_last: whether the session saw no part of the file since. The client looks for changes since the last view.
    """

    text: str
    ending: str
    doubts: int
    is_likely: bool = False
    is_trusted: bool = True
    is_seen_last: bool = True


@dataclass(frozen=True, slots=True)
class KnownTexts:
    """The whole content of files known to a thread, by path.

    doubts: how often something happened that may have changed files unseen.
    runs_on: whether a command was left running that may change files at any time.
    """

    files: SharedMap[KnownText] = field(default_factory=SharedMap)
    doubts: int = 0
    runs_on: bool = False

    def trusted(self, path: str) -> KnownText | None:
        """Return the content of a file if nothing is known that may have changed the file since the session saw the content."""
        known = self.files.get(path)
        in_doubt = self.runs_on or known is None or not known.is_trusted or known.doubts != self.doubts
        return None if in_doubt else known

    def in_doubt(self) -> "KnownTexts":
        """Return the same contents after something that may have changed files unseen."""
        return replace(self, doubts=self.doubts + 1)

    def told(self, message: Message) -> "KnownTexts":
        """Return the contents after a message. Contents of files that its texts name beside results are in doubt.

        By such a text, a client reports that a file changed, and from then on treats the changed file as shown.
        """
        texts = [text for block in message.blocks for text in _texts_beside(block)]
        files = self.files
        for path, known in self.files.items() if texts else ():
            if any(posixpath.basename(path) in text for text in texts):
                files = files.put(path, replace(known, is_trusted=False))
        return replace(self, files=files)

    def after(self, deed: FileDeed) -> "KnownTexts":
        """Return the contents known after a deed."""
        known = self.files.get(deed.path)
        if deed.shows_part and known is not None:
            return replace(self, files=self.files.put(deed.path, replace(known, is_seen_last=False)))
        if deed.known in ("whole", "likely") and deed.text is not None:
            is_likely = deed.known == "likely"
            now = KnownText(deed.text, deed.ending, self.doubts, is_likely, deed.is_trusted or not is_likely)
            return replace(self, files=self.files.put(deed.path, now))
        if deed.known == "part" and known is not None and _agrees(known.text, deed):
            return self  # still in doubt: the lines that were not shown prove nothing
        return self if known is None or not deed.is_news else replace(self, files=self.files.without(deed.path))


NO_TEXTS: Final = KnownTexts()


def file_deeds(
    texts: KnownTexts, profile: Profile, folder: str, call: ToolCall, result: ToolResult
) -> tuple[KnownTexts, tuple[FileDeed, ...]]:
    """Return the deeds of a call, with the contents known after the call.

    folder: the session's working folder, "" if unknown.
    """
    reading = reading_of(profile, call, result)
    if changes_unseen(profile, call):
        texts = replace(texts.in_doubt(), runs_on=texts.runs_on or runs_on(call.arguments))
    if reading.is_failure:
        return texts, ()
    if reading.is_repeat:
        paths = (absolute_path(access.path, folder) for access in reading.effect.accesses)
        return texts, tuple(FileDeed(path, "read", "name", is_news=False) for path in paths)
    if reading.effect.op == "exec" and (changes := shell_changes(call.arguments)):
        # without the exit code that a client tells, the command may still run
        is_done = profile.envelope is None or profile.envelope.match(result.text) is not None
        return _after_command(texts, folder, changes) if is_done else (texts.in_doubt(), ())
    hidden = is_withheld(result) or call.withheld is not None or _is_altered(profile, reading, result)
    moves = patch_moves(call.arguments)
    staying = replace(call, arguments=without_moves(call.arguments)) if moves else call
    found: list[FileDeed] = []
    for access in reading.effect.accesses:
        if access.op == "write" and access.path in moves.values():
            continue  # told with the file that was moved
        path = absolute_path(access.path, folder)
        told = _deed(texts, profile, staying, access, path, None if hidden else reading.shown, hidden=hidden)
        deeds = [_weighed(told, texts, profile, result)]
        if access.op == "read" and profile.is_empty(call, result):
            deeds = [FileDeed(path, "read", "part", "", total=1, proof="shown")]  # it may be one line end
        if access.op == "edit" and access.path in moves:
            to = absolute_path(moves[access.path], folder)
            deeds = [replace(deeds[0], path=to, deed="move", other=path), FileDeed(path, "delete", "name", other=to)]
        for deed in deeds:
            texts = texts.after(deed)
        found += deeds
    return texts, tuple(_last_of_each_path(found))


def changes_unseen(profile: Profile, call: ToolCall) -> bool:
    """Return whether a call may change files named neither in the arguments nor in the result."""
    effect = profile.effect_of(call)
    if call.withheld is not None:  # its arguments do not tell which file it changed
        return effect.op not in ("read", "list", "search")
    if effect.op == "exec":
        return not is_harmless(call.arguments)
    name = call.name.lower()
    touches_none = name in _NO_FILES or name.endswith(_OF_THE_WEB)
    return effect.op == "other" and profile.ops.get(call.name) is None and not touches_none


def _after_command(
    texts: KnownTexts, folder: str, changes: tuple[ShellChange, ...]
) -> tuple[KnownTexts, tuple[FileDeed, ...]]:
    """Return the deeds of a command for deletion or moving of files."""
    found: list[FileDeed] = []
    for change in changes:
        path = absolute_path(change.path, folder)
        to = "" if change.to is None else absolute_path(change.to, folder)
        gone = FileDeed(path, "delete", "name", other=to)
        if to:
            found.append(FileDeed(to, "move", "name", other=path))
            texts = texts.after(found[-1])
        texts = texts.after(gone)
        found.append(gone)
    return texts, tuple(found)


def _last_of_each_path(deeds: list[FileDeed]) -> Iterator[FileDeed]:
    """Yield one deed per file. A call with a read and a change of a file counts as a change."""
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


def _agrees(text: str, deed: FileDeed) -> bool:
    """Return whether shown lines are those of a content."""
    lines, shown = text.split("\n"), (deed.text or "").split("\n")
    return lines[deed.first - 1 : deed.first - 1 + len(shown)] == shown and deed.total in (None, len(lines))


def _deed(
    texts: KnownTexts,
    profile: Profile,
    call: ToolCall,
    access: FileAccess,
    path: str,
    shown: ShownText | None,
    *,
    hidden: bool,
) -> FileDeed:
    if access.op == "read":
        return _read(texts, path, shown, ends_counted=profile.counts_last)
    if access.op == "delete":
        return FileDeed(path, "delete", "name")
    after = None if hidden else _text_after(texts.files.get(path), profile, call, access, path)
    if after is None:
        return FileDeed(path, access.op, "name")
    text, ending = after
    proof: Proof = "written" if access.op == "write" else "edited"
    is_open = proof == "edited" and not ending and not profile.counts_last
    return FileDeed(
        path, access.op, "whole", text, ending, total=text.count("\n") + 1, proof=proof, is_end_open=is_open
    )


def _is_altered(profile: Profile, reading: InterpretedResult, result: ToolResult) -> bool:
    """Return whether a person changed the text of a write or edit before it was written."""
    return reading.effect.op in ("write", "edit") and profile.altered.search(result.text) is not None


def _weighed(deed: FileDeed, texts: KnownTexts, profile: Profile, result: ToolResult) -> FileDeed:
    """Return a deed, as likely if it is an edit whose result does not prove that the file was as the session knew it."""
    if deed.proof != "edited":
        return deed
    known = texts.trusted(deed.path)
    is_proven = known is not None and known.is_seen_last and not known.is_likely
    if is_proven and profile.verified.match(result.text) is not None:
        return deed
    return replace(deed, known="likely", is_trusted=known is not None)


def _text_after(
    before: KnownText | None, profile: Profile, call: ToolCall, access: FileAccess, path: str
) -> tuple[str, str] | None:
    """Return a file's content and last line end after a writing call; None if uncertain."""
    old = None if before is None else before.text
    made = file_change(profile, call, access, path, before=old, known=NOTHING.of(path), fetch=lambda _: None)
    if made is not None:
        return made.text, made.ending or ("" if before is None or access.op == "write" else before.ending)
    added = added_file(call.arguments, access.path) if access.op == "write" else None
    return None if added is None else text_and_ending(added, profile)


def text_and_ending(content: str, profile: Profile) -> tuple[str, str]:
    """Return a whole content as the client's reads show it, and the line end behind it."""
    return (content, "") if profile.counts_last or not content.endswith("\n") else (content[:-1], "\n")


def _read(texts: KnownTexts, path: str, shown: ShownText | None, *, ends_counted: bool) -> FileDeed:
    if shown is None:
        return FileDeed(path, "read", "name", is_news=False)
    known, trusted = texts.files.get(path), texts.trusted(path)
    text = "\n".join(shown.lines)
    if shown.first == 1 and shown.length is not None and shown.last >= shown.length:
        if ends_counted and shown.to_end:
            text += "\n" * shown.after  # a command shows the end of the last line as it is
        is_known = known is not None and known.text == text
        ending = known.ending if known is not None and is_known else ""
        is_news = not is_known or (known is not None and known.is_likely)
        total = text.count("\n") + 1
        deed = FileDeed(path, "read", "whole", text, ending, total=total, proof="shown", is_news=is_news)
        return replace(deed, is_end_open=not ending and not ends_counted)
    part = FileDeed(path, "read", "part", text, first=shown.first, total=shown.total, proof="shown")
    if trusted is None or not _agrees(trusted.text, part):
        return part
    length = trusted.text.count("\n") + 1
    whole = FileDeed(
        path, "read", "likely" if trusted.is_likely else "whole", trusted.text, trusted.ending, total=length
    )
    return replace(whole, proof="shown", is_news=False, is_trusted=True, shows_part=True)


def _texts_beside(block: Block) -> Iterator[str]:
    """Yield the texts that a client adds to a block beside the results of its calls."""
    if isinstance(block, Text):
        yield block.text
    elif isinstance(block, ToolResult) and "<system-reminder>" in block.text:
        yield from words_beside(block.text)
