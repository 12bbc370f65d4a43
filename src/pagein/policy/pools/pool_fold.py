"""Pools as a fold over the entries of a branch: the same branch gives the same pools in every process.

Rules of this file
------------------
1. Calls and their results are met as the client shows them. A result that comes again, after a compaction say, is known
   already: the first one counts. Some providers count their calls anew; then another call of the same id is another object.
2. What a call did to files is known by the rules of `policy.clients.known_files`. What an output names, it only names.
   A file that a command of a shell wrote is unknown until it is read again.
3. A read of a whole file shows the file, and no output of its own. Every other result is an object by itself. The answer to
   a read through the pools holds no text of the file; it is known by its trace.
4. A turn begins with words of the user.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.entries import Body, CompactionEntry, MessageEntry, NoteEntry, RequestSent
from pagein.model.file_homes import home_of_path
from pagein.model.journal_notes import ClientNote, PinNote, ReadNote
from pagein.model.memory_notes import RecordedNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.object_names import is_random, object_name, second_call_name
from pagein.model.pool_notes import PoolAct, PoolNote, trace_of_answer
from pagein.model.read_events import FileRead, FileWrite
from pagein.model.shapes import file_type, toolcall_draft
from pagein.model.shared_collections import SharedMap
from pagein.policy.clients.client_prompts import user_words
from pagein.policy.clients.known_files import (
    NO_TEXTS,
    FileDeed,
    KnownTexts,
    absolute_path,
    changes_unseen,
    file_deeds,
    text_and_ending,
)
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import OTHER, PROFILES
from pagein.policy.pools.found_paths import found_paths
from pagein.policy.pools.pool_links import links_in
from pagein.policy.pools.pool_steps import (
    activate,
    begin_epoch,
    begin_turn,
    clear_window,
    count_message,
    deactivate,
    index_object,
    list_object,
    make_unread,
    note_call,
    note_request,
    pin,
    trim,
    unpin,
)
from pagein.policy.pools.pool_values import NO_POOLS, USUAL, PooledObject, PoolRules, PoolState
from pagein.policy.pools.written_paths import written_paths

CONTEXT_TOOLS: Final = frozenset(["activate", "deactivate", "pin", "unpin"])
"""Tools that only change the window. Their calls are no part of it."""
TAKES: Final = (
    MessageEntry, CompactionEntry, RequestSent, PoolNote, PinNote, ReadNote, ClientNote, RecordedNote,
)  # fmt: skip
"""The entries and notes that may change the pools."""


@dataclass(frozen=True, slots=True)
class PoolWalk:
    """The pools at an entry, with what the next step needs.

    texts: contents that the branch told, by version.
    paths: the id of the file at a path.
    calls: calls without a result so far.
    traces: the objects that a read through the pools showed, by the trace of its answer.
    files: the contents of files that the branch proves.
    """

    state: PoolState = NO_POOLS
    texts: SharedMap[str] = field(default_factory=SharedMap)
    paths: SharedMap[str] = field(default_factory=SharedMap)
    calls: SharedMap[ToolCall] = field(default_factory=SharedMap)
    traces: SharedMap[tuple[str, ...]] = field(default_factory=SharedMap)
    files: KnownTexts = NO_TEXTS
    profile: Profile = OTHER
    folder: str = ""


START: Final = PoolWalk()


@dataclass(frozen=True, slots=True)
class PoolFold:
    """The fold of one session. Pure.

    session: name of the session. machine: id of its machine, "" if unknown. They name files as the stored objects do.
    stored: returns the text of a stored version, which the branch only names; None for a text that is not at hand. Without
        it, an edit of a file that was read through the pools leaves the content unknown.
    """

    session: str = ""
    machine: str = ""
    rules: PoolRules = USUAL
    stored: Callable[[str], str | None] = lambda _: None

    def start(self, folder: str = "") -> PoolWalk:
        """Return the walk before the first entry. folder: the session's working folder, "" if unknown."""
        return replace(START, folder=folder)

    def step(self, walk: PoolWalk, body: Body) -> PoolWalk:
        """Return the walk after an entry."""
        if isinstance(body, MessageEntry):
            return self._message(walk, body.message)
        if isinstance(body, NoteEntry):
            return self._note(walk, body)
        if isinstance(body, RequestSent):
            return _with(walk, note_request(walk.state))
        if isinstance(body, CompactionEntry):
            cleared = replace(walk, state=clear_window(walk.state, body.kept))
            return replace(walk, files=NO_TEXTS) if body.lost else cleared
        return walk

    def walk(self, bodies: Iterable[Body], folder: str = "") -> PoolWalk:
        """Return the walk after a whole branch."""
        walk = self.start(folder)
        for body in bodies:
            walk = self.step(walk, body)
        return walk

    def file_id(self, walk: PoolWalk, path: str) -> str:
        """Return the id of the file at a path."""
        known = walk.paths.get(path)
        home = home_of_path(path, self.session, self.machine)
        return object_name("file", home, path, at=None) if known is None else known

    # --- messages ---

    def _message(self, walk: PoolWalk, message: Message) -> PoolWalk:
        state = count_message(walk.state, is_answer=message.role == "assistant")
        if user_words(message) or (not state.turn and message.role == "assistant"):
            walk = replace(walk, state=begin_turn(state, self.rules), files=walk.files.in_doubt())
        else:
            walk = replace(walk, state=state)
        for block in message.blocks:
            if isinstance(block, ToolCall):
                files = walk.files.in_doubt() if changes_unseen(walk.profile, block) else walk.files
                walk = replace(walk, calls=walk.calls.put(block.id, block), files=files)
            elif isinstance(block, ToolResult):
                walk = self._result(walk, block)
        return walk

    def _result(self, walk: PoolWalk, result: ToolResult) -> PoolWalk:
        call = walk.calls.get(result.call_id) or ToolCall(result.call_id, result.name, "{}")
        walk = replace(walk, calls=walk.calls.without(call.id))
        new = self._as_new(walk, call, result)
        if new is None:
            return walk
        call = new
        read = walk.traces.get(trace_of_answer(result.text)) if len(walk.traces) else None
        if read is not None:
            walk = self._meet_call(walk, call, result, tuple((one, "") for one in read))
            return _with(walk, note_call(walk.state, call.id, read, self.rules))
        files, deeds = file_deeds(walk.files, walk.profile, walk.folder, call, result)
        lost = {
            one.path
            for one in deeds
            if one.known == "part" and one.path in walk.files.files and one.path not in files.files
        }
        walk = replace(walk, files=files)
        shown: list[str] = []
        used: list[str] = []
        for deed in deeds:
            walk = self._deed(walk, deed, lost)
            object_id = self.file_id(walk, deed.path)
            if deed.deed == "read" and deed.is_whole_or_trusted:
                shown.append(object_id)
            elif deed.deed != "read":
                used.append(object_id)
        versions = tuple((one, walk.state.index[one].version or "") for one in shown)
        walk = self._meet_call(walk, call, result, versions if len(deeds) == len(shown) else ())
        op = walk.profile.effect_of(call).op
        failed = walk.profile.is_failure(call, result)
        if not failed:
            for path in found_paths(op, call, result.text, walk.folder):
                walk = self._name(walk, path)
        changed = {deed.path for deed in deeds if deed.deed != "read"}
        walk = self._doubt_written(walk, call, changed, failed=failed)
        if call.name in CONTEXT_TOOLS:
            return walk
        if not shown or len(deeds) > len(shown):
            walk = _with(walk, list_object(walk.state, call.id))
            shown.append(call.id)
        walk = _with(walk, note_call(walk.state, call.id, shown, self.rules, used=used))
        return self._follow_links(walk, shown)

    def _as_new(self, walk: PoolWalk, call: ToolCall, result: ToolResult) -> ToolCall | None:
        """Return a call under the id of its object; None for a known call."""
        known = walk.state.index.get(call.id)
        if known is None or known.content == "unread":
            return call
        if is_random(call.id) or _is_repeat(known, call, result):
            return None
        return replace(call, id=second_call_name(call.id, self.session, str(walk.state.changes)))

    def _meet_call(
        self, walk: PoolWalk, call: ToolCall, result: ToolResult, shows: tuple[tuple[str, str], ...]
    ) -> PoolWalk:
        is_failure = walk.profile.is_failure(call, result)
        told = toolcall_draft(call, replace(result, is_error=is_failure)).metadata
        walk, version = _with_text(walk, result.text)
        found = PooledObject(
            call.id,
            "toolcall",
            "text",
            version,
            len(result.text),
            tool=call.name or result.name,
            args=str(told["args_display"]),
            status=str(told["status"]),
            shows=shows,
        )
        return _with(walk, index_object(walk.state, found))

    def _deed(self, walk: PoolWalk, deed: FileDeed, lost: Collection[str]) -> PoolWalk:
        """Follow the effect of a call on a file. lost: paths of files whose known content the call disproves."""
        object_id = self.file_id(walk, deed.path)
        if deed.deed == "move" and deed.other in walk.paths:
            object_id, replaced = walk.paths[deed.other], walk.paths.get(deed.path)
            walk = replace(walk, paths=walk.paths.without(deed.other))
            if replaced is not None and replaced != object_id and replaced in walk.state.index:
                gone = PooledObject(replaced, "file", "none", deleted=True)
                walk = _with(walk, index_object(walk.state, gone))
        elif deed.deed == "delete" and deed.other:
            return walk  # told with the new path, which is of the same object
        walk = replace(walk, paths=walk.paths.put(deed.path, object_id))
        base = PooledObject(object_id, "file", path=deed.path, file_type=file_type(deed.path))
        if deed.deed == "delete":
            found = replace(base, content="none", deleted=True)
        elif deed.is_whole_or_trusted and deed.content is not None:
            walk, version = _with_text(walk, deed.content)
            found = replace(base, content="text", version=version, chars=len(deed.content))
        else:
            found = base
        state = index_object(walk.state, found)
        if found.content == "unread" and (deed.deed in ("write", "edit") or deed.path in lost):
            state = make_unread(state, object_id)
        return _with(walk, list_object(state, object_id))

    def _doubt_written(self, walk: PoolWalk, call: ToolCall, known: Collection[str], *, failed: bool) -> PoolWalk:
        """Treat files changed by a shell command as unknown, until they are read again.

        known: paths of which is known what the command did. A deleted file is there again if a command that did not fail
        wrote it.
        """
        is_shell = walk.profile.effect_of(call).op == "exec"
        for path, is_written in written_paths(call, walk.folder).items() if is_shell else ():
            one = walk.state.index.get(walk.paths.get(path, ""))
            if one is not None and path not in known and (not one.deleted or (is_written and not failed)):
                walk = _with(walk, make_unread(walk.state, one.id))
        return walk

    def _name(self, walk: PoolWalk, path: str) -> PoolWalk:
        """List a file that an output names."""
        object_id = self.file_id(walk, path)
        known = walk.state.index.get(object_id)
        if known is None or known.deleted:
            found = PooledObject(object_id, "file", path=path, file_type=file_type(path))
            walk = replace(walk, paths=walk.paths.put(path, object_id))
            walk = _with(walk, index_object(walk.state, found))
        return _with(walk, list_object(walk.state, object_id))

    def _follow_links(self, walk: PoolWalk, shown: Iterable[str]) -> PoolWalk:
        """List the targets of references in newly active texts, as far as the branch knows them."""
        for object_id in shown:
            one = walk.state.index[object_id]
            if one.type == "toolcall" or not walk.state.is_active(object_id):
                continue
            for named in links_in(walk.texts.get(one.version or "") or "", one.path):
                target = named if named in walk.state.index else walk.paths.get(named)
                if target is not None:
                    walk = _with(walk, list_object(walk.state, target))
        return walk

    # --- notes ---

    def _note(self, walk: PoolWalk, body: NoteEntry) -> PoolWalk:
        match body.note:
            case PoolNote(acts, trace):
                for act in acts:
                    walk = self._act(walk, act)
                if trace:
                    shown = tuple(act.id for act in acts if act.act == "activate")
                    walk = replace(walk, traces=walk.traces.put(trace, shown))
                return _with(walk, trim(walk.state, self.rules))
            case PinNote(wish) if wish is not None and wish.call_id in walk.state.index:
                change = {"pin": pin, "veto": pin, "unpin": unpin, "drop": deactivate}.get(wish.act)
                return walk if change is None else _with(walk, change(walk.state, wish.call_id))
            case ReadNote(event) if isinstance(event, FileRead | FileWrite):
                return self._read(walk, event)
            case ClientNote(name) if name in PROFILES:
                return replace(walk, profile=PROFILES[name])
            case RecordedNote(agent, cwd):
                profile = PROFILES.get(agent.partition("/")[0], walk.profile)
                return replace(walk, profile=profile, folder=walk.folder or cwd)
            case _:
                return walk

    def _act(self, walk: PoolWalk, act: PoolAct) -> PoolWalk:
        if act.act == "epoch":
            return _with(walk, begin_epoch(walk.state))
        if act.type:
            walk = self._fetch(_with(walk, index_object(walk.state, _found(act))), act.version)
            if act.path and not act.deleted:
                walk = replace(walk, paths=walk.paths.put(act.path, act.id))
            if act.type == "file" and act.content != "unread":
                walk = self._know(walk, act.path, act.version)
        if act.id not in walk.state.index:
            return walk
        match act.act:
            case "list":
                return _with(walk, list_object(walk.state, act.id))
            case "activate":
                return self._follow_links(_with(walk, activate(walk.state, act.id)), [act.id])
            case "deactivate":
                return _with(walk, deactivate(walk.state, act.id))
            case _:
                return walk

    def _read(self, walk: PoolWalk, event: FileRead | FileWrite) -> PoolWalk:
        """Follow a read or write through pagein, of which the store has the content."""
        path = absolute_path(event.path, walk.folder)
        object_id = self.file_id(walk, path)
        found = PooledObject(
            object_id, "file", "text", event.version.hex, _chars(walk, object_id, event), path, file_type(path)
        )
        walk = self._know(replace(walk, paths=walk.paths.put(path, object_id)), path, event.version.hex)
        state = list_object(index_object(walk.state, found), object_id)
        if isinstance(event, FileRead) and event.whole:
            state = note_call(state, "", [object_id], self.rules)
        return _with(walk, state)

    def _fetch(self, walk: PoolWalk, version: str) -> PoolWalk:
        """Take the text of a version from the store if the branch only names it."""
        text = self.stored(version) if version and version not in walk.texts else None
        return walk if text is None else replace(walk, texts=walk.texts.put(version, text))

    def _know(self, walk: PoolWalk, path: str, version: str) -> PoolWalk:
        """Follow a sighting of a file from outside the messages: later edits change this content, and no older one."""
        walk = self._fetch(walk, version)
        text = walk.texts.get(version)
        if text is None:
            return replace(walk, files=replace(walk.files, files=walk.files.files.without(path)))
        seen = FileDeed(path, "read", "whole", *text_and_ending(text, walk.profile))
        return replace(walk, files=walk.files.after(seen))


def _is_repeat(known: PooledObject, call: ToolCall, result: ToolResult) -> bool:
    """Return whether a call with a reused id is known already."""
    version = ContentHash.of(result.text.encode("utf-8", "surrogatepass")).hex
    told = toolcall_draft(call, result).metadata["args_display"]
    return (known.tool, known.args, known.version) == (call.name or result.name, told, version)


def _chars(walk: PoolWalk, object_id: str, event: FileRead | FileWrite) -> int:
    """Return the length of a file's text; for a write, the length that was known before."""
    text = walk.texts.get(event.version.hex)
    known = walk.state.index.get(object_id)
    if text is not None:
        return len(text)
    return event.size if isinstance(event, FileRead) else 0 if known is None else known.chars


def _with(walk: PoolWalk, state: PoolState) -> PoolWalk:
    return walk if state is walk.state else replace(walk, state=state)


def _with_text(walk: PoolWalk, text: str) -> tuple[PoolWalk, str]:
    version = ContentHash.of(text.encode("utf-8", "surrogatepass")).hex
    return replace(walk, texts=walk.texts.put(version, text)), version


def _found(act: PoolAct) -> PooledObject:
    return PooledObject(
        act.id, act.type, act.content, act.version or None, act.chars, act.path, act.file_type, act.tool, act.args,
        act.status, act.nickname, deleted=act.deleted, view=act.view,
    )  # fmt: skip
