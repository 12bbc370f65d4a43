"""`read` with mode=diff_preview: how a file differs from another state of it, hunk by hunk, and whether it can be parsed."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pagein.engine.reads.session_guards import ServedRead
from pagein.engine.reads.session_reads import ReadResult
from pagein.errors import NotRecallable
from pagein.model.read_contract import NextCall, ReadPlace
from pagein.policy.guards.judgement import Cut, ReadAsk
from pagein.policy.reads.hunk_budget import Hunk, HunkChoice, choose_hunks, hunks_of
from pagein.tools.reading.link_diff import read_link
from pagein.tools.reading.mode_answers import JudgedRoom, ModeAnswer, ReadCall, head_text, served_facts
from pagein.tools.reading.read_problems import ReadRefusal, next_read, short_name
from pagein.tools.reading.targets import NamedFile, check_state, find_target
from pagein.workspace.git_versions import GitProblem, GitVersion, git_version, pointer_of, submodule_commit
from pagein.workspace.syntax_check import syntax_faults
from pagein.workspace.target_state import link_at, mode_of

_TAIL: Final = 400  # characters for the lines behind the hunks
_MOST_ERRORS: Final = 20
_MOST_COMPARED: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison.

    content: bytes; None where there is no such file. name: of the file there. mode: as git writes it; 0 for unknown.
    state: for people. mixes_ends: whether git is told to convert the line ends of the file.
    is_renamed: whether the file has another name in the other state.
    """

    content: bytes | None
    name: str
    mode: int
    state: str
    mixes_ends: bool = False
    is_renamed: bool = False


def read_diff(call: ReadCall) -> ModeAnswer:
    """Answer a call with mode=diff_preview. Raises ReadRefusal, AbortedOperation and HostError."""
    asked = call.asked
    named = find_target(call.session, asked.target, offset=1)
    if asked.content is None and _is_of_git(asked.against):
        link = link_at(named.located.absolute)
        if link is not None:
            return read_link(call, named, link)
    if named.state.name == "folder":
        return _submodule(call, named)
    old = _base(call, named)
    new = _present(call, named, old)
    if old.content is None and new.content is None:
        check_state(named)
    if max(len(old.content or b""), len(new.content or b"")) > _MOST_COMPARED:
        why = f"{short_name(named.shown)} is too large to compare: more than {_MOST_COMPARED} bytes. Compare it by a command."
        raise ReadRefusal("FILE_TOO_LARGE", why)
    ask = ReadAsk(
        "diff_preview",
        asked.target,
        named.located.key,
        has_limit=asked.limit is not None,
        chars=asked.max_preview_chars,
    )
    verdict, room = call.judge(ask)
    found = _compare(old, new, named)
    if (asked.offset or 1) > max(1, len(found.hunks)):
        why = f"Hunk {asked.offset} is behind the last of {len(found.hunks)} hunks."
        raise ReadRefusal("OUT_OF_RANGE", why, _again(call, named, 1))
    more: dict[str, Any] = {"against": asked.against, "base": old.state, **found.figures}
    return _answer(call, named, found, JudgedRoom(verdict, room), more)


@dataclass(frozen=True, slots=True)
class SideComparison:
    """Two sides compared.

    facts: lines about the whole file, the first one a summary. labels: the names of both sides, as a diff gives them.
    """

    facts: tuple[str, ...]
    labels: str
    hunks: tuple[Hunk, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)


def _compare(old: Side, new: Side, named: NamedFile) -> SideComparison:
    is_same, facts = old.content == new.content, tuple(_facts(old, new, named))
    texts = _texts(old, new)
    if texts is None:
        kind = "binary files" if _is_binary(old) or _is_binary(new) else "files that are not UTF-8"
        said = "" if is_same else f"{kind} differ: {_size(old)} became {_size(new)}"
        return SideComparison((_summary(old, new, (), is_same=is_same), *facts, *([said] if said else [])), "")
    hunks = hunks_of(*texts)
    errors = _errors(named, new, texts[1])
    figures = {
        "hunks": len(hunks),
        "added": sum(one.added for one in hunks),
        "removed": sum(one.removed for one in hunks),
        "syntax_errors": errors,
    }
    summary = _summary(old, new, hunks, is_same=is_same)
    return SideComparison((summary, *facts, *_syntax(errors)), _labels(old, new), hunks, figures)


def _answer(
    call: ReadCall, named: NamedFile, found: SideComparison, judged: JudgedRoom, more: dict[str, Any]
) -> ModeAnswer:
    asked, room, hunks = call.asked, judged.room, found.hunks
    head = head_text(judged.verdict, "\n".join(found.facts), room) or found.facts[0][: room.chars // 2] + "\n"
    choice, tail = HunkChoice(), ""
    calls: list[NextCall] = []
    if hunks and not asked.tells_places_only:
        spare = room.without(head + found.labels) - min(_TAIL, room.chars // 3)
        choice = choose_hunks(hunks, asked.offset or 1, asked.limit, spare)
        tail, calls = _left_out(call, named, hunks, choice)
    body = choice.listed + (found.labels if choice.shown else "") + choice.text + tail
    if asked.tells_places_only and hunks:
        body = choose_hunks(hunks, 1, 0, max(1, room.without(head) * 3)).listed
    text = _whole_lines(head + body, room.chars)
    if choice.next_offset is not None:
        more |= {"left_out": list(choice.left), "next_calls": calls}
        # a hunk that does not fit is passed over, so that one who follows the offsets comes to an end
        following = choice.next_offset + (0 if choice.shown else 1)
        if following <= len(hunks):
            more["next_offset"] = following
    is_cut = choice.next_offset is not None and (asked.limit is None or len(choice.shown) < asked.limit)
    cut: set[Cut] = {"chars"} if is_cut else set()
    rows = sum(hunk.text.count("\n") for hunk in choice.shown)
    served = ServedRead("diff_preview", named.located.absolute, lines=rows, chars=len(text), content=text, cut=cut)
    first, last = (choice.shown[0].first, choice.shown[-1].last) if choice.shown else (None, None)
    place, is_more = ReadPlace(named.shown, first, last), choice.next_offset is not None
    return ModeAnswer(ReadResult(text), place, judged.verdict, served, is_more, more)


# --- the two sides ---


def _base(call: ReadCall, named: NamedFile) -> Side:
    against = call.asked.against
    if against == "WORKTREE":
        return _working_tree(call, named)
    if against.startswith("snapshot:"):
        return _stored(call, against.partition(":")[2], named)
    try:
        found: GitVersion = git_version(named.located.key, against)
    except GitProblem as problem:
        raise ReadRefusal(problem.code, str(problem), _other_ways(call, named, problem.code)) from problem
    if found.renamed and call.session.placed.locate(f"{found.folder}/{found.name}", offset=1).excluded:
        return Side(None, named.shown, 0, found.state)  # whose text is never shown, under no other name either
    content = found.content
    if content is not None and found.ignores_line_ends:
        content = content.replace(b"\r\n", b"\n")
    return Side(content, found.name, found.mode, found.state, found.ignores_line_ends, found.renamed)


def _other_ways(call: ReadCall, named: NamedFile, code: str) -> tuple[NextCall, ...]:
    if named.state.name != "file":
        return ()
    if code in ("NO_GIT", "NO_REPOSITORY"):
        return (next_read("file", named.shown),)
    return () if call.asked.against == "HEAD" else (next_read("diff_preview", named.shown, against="HEAD"),)


def _stored(call: ReadCall, name: str, named: NamedFile) -> Side:
    try:
        version = call.session.objects.get(name)
        text = call.session.objects.content(version)
    except NotRecallable as problem:
        why = f"{problem}. Take an id with its version, such as snapshot:<id>@3; pagein history names them."
        raise ReadRefusal("UNKNOWN_BASE", why) from problem
    if text is None:
        raise ReadRefusal("NO_BASE_CONTENT", f"{name} has no text to compare with. Take another version of it.")
    path = version.metadata.get("path")
    return Side(text.encode(), str(path or named.shown), 0, f"{version.id}@{version.number}")


def _present(call: ReadCall, named: NamedFile, old: Side) -> Side:
    if call.asked.content is not None:
        return Side(call.asked.content.encode("utf-8", "replace"), named.shown, old.mode, "the proposed text")
    side = _working_tree(call, named)
    if side.content is not None and old.mixes_ends:
        return replace(side, content=side.content.replace(b"\r\n", b"\n"))
    return side


def _working_tree(call: ReadCall, named: NamedFile) -> Side:
    """Return the file on the disk. Raises ReadRefusal."""
    state = "the working tree"
    if named.state.name == "missing":
        return Side(None, named.shown, 0, state)
    check_state(named)
    document = call.session.placed.load(named.located, call.signal)
    return Side(document.content, named.shown, mode_of(named.located.absolute), state)


def _texts(old: Side, new: Side) -> tuple[str, str] | None:
    """Return both sides as text; None for a binary side, or a side outside UTF-8."""
    sides = []
    for side in (old, new):
        if _is_binary(side):
            return None
        try:
            sides.append((side.content or b"").decode())
        except UnicodeDecodeError:
            return None
    return sides[0], sides[1]


def _is_binary(side: Side) -> bool:
    return b"\0" in (side.content or b"")[:8_000]


# --- what is said of them ---


def _summary(old: Side, new: Side, hunks: tuple[Hunk, ...], *, is_same: bool) -> str:
    if is_same and old.state == new.state:
        return f"{new.name}: nothing to compare. With against='WORKTREE' give a proposed text in 'content'."
    if is_same:
        return f"{new.name}: no differences between {old.state} and {new.state}"
    added, removed = sum(one.added for one in hunks), sum(one.removed for one in hunks)
    number = "1 hunk" if len(hunks) == 1 else f"{len(hunks)} hunks"
    return f"{new.name}: {number}, +{added} -{removed}, from {old.state} to {new.state}"


def _facts(old: Side, new: Side, named: NamedFile) -> Iterator[str]:
    if old.content is None:
        yield f"new file: {old.state} has no {named.shown}"
    elif new.content is None:
        yield "deleted file: it is not on the disk"
    if old.content is not None and new.content is not None:
        if old.is_renamed:
            yield f"renamed from {old.name}"
        if old.mode and new.mode and old.mode != new.mode:
            yield f"mode changed from {old.mode:06o} to {new.mode:06o}"
    pointer = None if old.content is None else pointer_of(old.content)
    if pointer is not None and new.content is not None and pointer_of(new.content) is None:
        same = hashlib.sha256(new.content).hexdigest() == pointer
        yield f"git keeps a pointer to a large file (git-lfs); the file on the disk is {'the same' if same else 'another'}"


def _size(side: Side) -> str:
    return "no file" if side.content is None else f"{len(side.content)} bytes"


def _labels(old: Side, new: Side) -> str:
    before = "/dev/null" if old.content is None else f"a/{old.name}"
    after = "/dev/null" if new.content is None else f"b/{new.name}"
    return f"--- {before}\n+++ {after}\n"


def _errors(named: NamedFile, new: Side, text: str) -> list[dict[str, Any]] | None:
    """Return the unparsable places of the new text; None for an unparsed text."""
    if new.content is None:
        return None
    found = syntax_faults(named.shown, text)
    return None if found is None else [{"line": one.line, "message": one.message} for one in found[:_MOST_ERRORS]]


def _syntax(errors: list[dict[str, Any]] | None) -> Iterator[str]:
    for error in errors or ():
        yield f"syntax: line {error['line']}: {error['message']}"


def _whole_lines(text: str, room: int) -> str:
    """Return as many whole lines of a text as fit; of a longer first line its beginning."""
    return text if len(text) <= room else text[: text.rfind("\n", 0, room) + 1] or text[:room]


def _again(call: ReadCall, named: NamedFile, offset: int) -> list[NextCall]:
    """Return the same call from another hunk on; None for a proposed text, because the call would repeat the whole
    text.
    """
    asked = call.asked
    if asked.content is not None:
        return []
    return [next_read("diff_preview", named.shown, against=asked.against, offset=offset)]


def _left_out(
    call: ReadCall, named: NamedFile, hunks: tuple[Hunk, ...], choice: HunkChoice
) -> tuple[str, list[NextCall]]:
    """Return the note on omitted hunks, with the calls to show them."""
    if choice.next_offset is None:
        return "", []
    first, last = choice.left[0], choice.left[-1]
    which = f"hunk {first}" if first == last else f"hunks {first}-{last}"
    if choice.shown:
        text = f"[pagein: {which} of {len(hunks)} left out. Use offset={first} to continue.]\n"
        return text, _again(call, named, first)
    hunk = hunks[choice.next_offset - 1]
    begin, end = max(1, hunk.first), max(1, hunk.first, hunk.last)
    where = "now" if call.asked.content is None else "in the proposed text"
    lines = f"Its lines {where}: {begin}-{end}" if hunk.last >= hunk.first else "It leaves no lines"
    text = f"[pagein: hunk {first} has {len(hunk.text)} characters, more than fit. {lines}.]\n"
    # the lines of a proposed text are on no disk
    on_disk = call.asked.content is None and hunk.last >= hunk.first
    calls: list[NextCall] = [next_read("snippet", named.shown, start_line=begin, end_line=end)] if on_disk else []
    if last > first:
        text += f"[pagein: Use offset={first + 1} to continue.]\n"
        calls += _again(call, named, first + 1)
    return text, calls


def _submodule(call: ReadCall, named: NamedFile) -> ModeAnswer:
    """Answer for a folder: the commits of a submodule. Raises ReadRefusal for any other folder."""
    against = call.asked.against
    try:
        now = submodule_commit(named.located.key)
        before = None if now is None or not _is_of_git(against) else git_version(named.located.key, against)
    except GitProblem as problem:
        if problem.code != "NO_REPOSITORY":
            raise ReadRefusal(problem.code, str(problem)) from problem
        now = before = None  # the workspace, or a folder without git: a folder in each case
    if now is None or before is None or not (before.is_submodule or before.content is None):
        check_state(named)
        raise ReadRefusal("IS_DIRECTORY", f"{short_name(named.shown)} is a folder. Name a file in it.")
    verdict, room = call.judge(ReadAsk("diff_preview", call.asked.target, named.located.key))
    then = before.content.decode() if before.content is not None else "nothing"
    state = "at the same commit as" if then == now else f"now at {now}, and at {then} in"
    text = head_text(verdict, f"{named.shown} is a submodule, {state} {before.state}", room)
    served = served_facts(call, named, text)
    more = {"against": against, "base": before.state, "submodule": {"from": then, "to": now}, "hunks": 0}
    return ModeAnswer(ReadResult(text), ReadPlace(named.shown), verdict, served, more=more)


def _is_of_git(against: str) -> bool:
    return against in ("HEAD", "INDEX") or against.startswith("commit:")
