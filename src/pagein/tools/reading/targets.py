"""The file that a call of `read` names: found, checked and read, or refused with a code for each reason."""

import codecs
from dataclasses import dataclass
from typing import Final

from pagein.engine.session import Session
from pagein.errors import BadInput
from pagein.model.documents import Document, LocatedFile
from pagein.policy.guards.judgement import search_call
from pagein.ports import Signal
from pagein.tools.reading.read_problems import LONGEST_NAME, ReadRefusal, next_read, short_name
from pagein.workspace.target_state import TargetState, is_inside, root_of, shown_path, state_of

MAX_BYTES: Final = 256 * 1024 * 1024
"""Largest file that is opened."""
_SNIFFED: Final = 8_000  # as git does
_MOST_CALLS: Final = 3


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file of the workspace that a call names.

    shown: path from the workspace on.
    state: what stands there.
    """

    target: str
    located: LocatedFile
    shown: str
    state: TargetState


def find_target(session: Session, target: str, *, offset: int | None = None, limit: int | None = None) -> NamedFile:
    """Return the file that a target names, existing or not. Opens nothing.

    Raises ReadRefusal for a path outside of the workspace, through a link or not, and for an excluded file.
    """
    if "\0" in target:
        raise ReadRefusal("INVALID_ARGS", "'target' must be a path without NUL characters")
    try:
        located = session.placed.locate(target, offset=offset, limit=limit)
    except BadInput as problem:  # a line suffix that is none
        raise ReadRefusal("INVALID_ARGS", short_name(str(problem))) from problem
    root = root_of(session.folder or ".")
    if not is_inside(located.key, root):
        inside = is_inside(located.absolute, root) or is_inside(located.absolute, session.folder or root)
        if inside:
            raise ReadRefusal(
                "SYMLINK_ESCAPE",
                f"{short_name(target)} is a link out of the workspace, so it is not read. Name a file of the workspace.",
            )
        raise ReadRefusal(
            "OUTSIDE_WORKSPACE",
            f"{short_name(target)} is outside of the workspace, so it is not read. Name a file of the workspace.",
        )
    shown = shown_path(located.key, root)
    if located.excluded:
        raise ReadRefusal(
            "EXCLUDED_FILE",
            f"{short_name(shown)} is excluded: pagein stores nothing of such files, so this tool does not show them. "
            "If you need it, ask the user, or use another tool.",
        )
    return NamedFile(target, located, shown, state_of(located.absolute))


def read_text(session: Session, named: NamedFile, signal: Signal | None = None) -> Document:
    """Read a text file. Raises ReadRefusal for anything else, and AbortedOperation."""
    document = read_any(session, named, signal)
    if document.media_type is not None:
        raise ReadRefusal(
            "BINARY_FILE",
            f"{short_name(named.shown)} is an image ({document.media_type}). Read it with mode='file'.",
            (next_read("file", named.shown),),
        )
    return document


def read_any(session: Session, named: NamedFile, signal: Signal | None = None) -> Document:
    """Read a text file or an image. Raises ReadRefusal for anything else, and AbortedOperation."""
    check_state(named)
    try:
        document = session.placed.load(named.located, signal)
    except BadInput as problem:
        raise ReadRefusal("UNREADABLE", f"{short_name(named.shown)} cannot be read: {problem}") from problem
    if document.media_type is not None:
        return document
    if _is_utf16(document.content):
        why = f"{short_name(named.shown)} is UTF-16, and not UTF-8. Convert it first, for example with iconv."
        raise ReadRefusal("WRONG_ENCODING", why)
    if b"\0" in document.content[:_SNIFFED]:
        raise ReadRefusal(
            "BINARY_FILE",
            f"{short_name(named.shown)} is binary ({len(document.content)} bytes). Look at it with a command for its format.",
        )
    if not document.strict:
        raise ReadRefusal("WRONG_ENCODING", _wrong_byte(short_name(named.shown), document.content))
    return document


def check_state(named: NamedFile) -> None:
    """Raise ReadRefusal if no readable file stands at a path."""
    shown, state = short_name(named.shown), named.state
    name = named.shown.rpartition("/")[2][:LONGEST_NAME]
    match state.name:
        case "missing":
            similar = [_beside(named.shown, one) for one in state.names]
            hint = f" Similar: {', '.join(similar)}." if similar else " Use search to find it."
            calls = [next_read("file", one) for one in similar[:_MOST_CALLS]]
            raise ReadRefusal("NOT_FOUND", f"There is no file {shown}.{hint}", (*calls, search_call(name)))
        case "folder":
            inside = [_inside(named.shown, one) for one in state.names]
            calls = [next_read("file", one) for one in inside[:_MOST_CALLS] if not one.endswith("/")]
            raise ReadRefusal(
                "IS_DIRECTORY",
                f"{shown} is a folder. "
                + (f"Name a file in it, such as {', '.join(inside)}." if inside else "It has no files."),
                calls if shown == "." else (*calls, search_call(name)),
            )
        case "special":
            raise ReadRefusal("NOT_A_FILE", f"{shown} is a pipe, a device or a socket, and no file. Name a file.")
        case "unreadable":
            raise ReadRefusal("UNREADABLE", f"{shown} cannot be opened. Check its permissions and its name.")
        case "file":
            if state.size > MAX_BYTES:
                raise ReadRefusal(
                    "FILE_TOO_LARGE",
                    f"{shown} has {state.size} bytes; at most {MAX_BYTES} are read. Search it, or show a part by a command.",
                    (search_call(name),),
                )


def _inside(shown: str, name: str) -> str:
    return name if shown == "." else f"{shown}/{name}"


def _beside(shown: str, name: str) -> str:
    folder = shown.rpartition("/")[0]
    return f"{folder}/{name}" if folder else name


def _is_utf16(content: bytes) -> bool:
    if not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    try:
        return "\0" not in content.decode("utf-16")
    except UnicodeDecodeError:
        return False


def _wrong_byte(shown: str, content: bytes) -> str:
    try:
        content.decode()
    except UnicodeDecodeError as wrong:
        line = content.count(b"\n", 0, wrong.start) + 1
        return (
            f"{shown} is not UTF-8: byte 0x{content[wrong.start]:02x} at {wrong.start}, in line {line}. "
            "Convert it first, for example with iconv."
        )
    return f"{shown} is not UTF-8."
