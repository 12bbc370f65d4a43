"""The pools of a session: known objects, active objects, and the user's changes to both.

Rules of this file
------------------
1. The pools are folded from the journal. An act is a note at the current entry, so it holds on this branch alone (law 6).
2. A content is stored before the note about it. What must not be stored never enters a pool (law 9).
3. A failing store costs no act: it holds in this process, and is stored with the next entry.
"""

import contextlib
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from pagein.engine.log.journal import Fold
from pagein.engine.log.session_log import SessionLog
from pagein.engine.reads.read_resources import Outside
from pagein.engine.recall.session_recall import SessionRecall
from pagein.errors import BadInput, CallerError, HostError, StoreError
from pagein.model.documents import Document
from pagein.model.entries import RequestSent
from pagein.model.journal_notes import Note, PinNote
from pagein.model.pins import Act, Wish
from pagein.model.pool_notes import PoolAct, PoolActKind, PoolNote, trace_of_answer
from pagein.model.shapes import file_type
from pagein.model.versions import Version
from pagein.policy.clients.known_files import absolute_path
from pagein.policy.layouts.pool_lines import content_text
from pagein.policy.pools.pool_fold import TAKES, PoolFold, PoolWalk
from pagein.policy.pools.pool_links import links_in, paths_of
from pagein.policy.pools.pool_steps import is_locked
from pagein.policy.pools.pool_values import USUAL, PooledObject, PoolRules, PoolState
from pagein.policy.pools.sightings import act_about, sighting_of
from pagein.ports import Files, Signal

_PART: Final = re.compile(r"(.+)#(summary|([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?)")
_LONGEST_ARGS: Final = 400
NO_TEXT: Final = "Content unavailable (non-text file)"


@dataclass(frozen=True, slots=True)
class PoolReply:
    """The answer to an act.

    text: for the model or the person.
    id: id of the object; "" if there is none.
    is_error: whether the act was refused.
    failure: why the note is not stored; None if it is.
    """

    text: str
    id: str = ""
    is_error: bool = False
    failure: str | None = None


class SessionPools:
    """The pools of a session. Thread-safe.

    outside: resources of reads; None for a session that reads no files.
    files: returns the files as seen from the session's folder; None for a session without one.
    recalls: gives the stored objects; None for a session without a store of them.
    """

    def __init__(
        self,
        log: SessionLog,
        outside: Outside | None,
        files: Callable[[], Files | None],
        recalls: SessionRecall | None,
        rules: PoolRules = USUAL,
        folder: str = "",
    ) -> None:
        self._log, self._outside, self._files, self._recalls = log, outside, files, recalls
        self._rules = rules
        self._pure = PoolFold(log.name, rules=rules, stored=self.stored)
        self.work_in(folder)

    def work_in(self, folder: str) -> None:
        """Set the folder by which relative paths name files."""
        self._folder = folder
        start = self._pure.start(folder)
        self._fold: Fold[PoolWalk] = Fold(self._log.journal, start, self._pure.step, takes=TAKES)

    @property
    def state(self) -> PoolState:
        """The pools at the current entry."""
        return self._walk.state

    @property
    def _walk(self) -> PoolWalk:
        return self._fold[self._log.leaf]

    def sets(self) -> Mapping[str, tuple[str, ...]]:
        """Return the ids in `active_set`, `inactive_set` and `pinned_set`, as the session object has them."""
        return self.state.sets()

    def text(self, object_id: str, version: str | None = None) -> str | None:
        """Return the content of an object in the index; None for an object without content, or with lost content.

        version: None for the newest that the branch knows.
        """
        walk = self._walk
        one = walk.state.index.get(object_id)
        wanted = version or (None if one is None else one.version)
        if wanted is None:
            return None
        told = walk.texts.get(wanted)
        return self.stored(wanted, object_id) if told is None else told

    def stored(self, version: str, object_id: str = "") -> str | None:
        """Return the text of a version without content on the branch; None if lost, or another object's."""
        text = None if self._outside is None else self._outside.text(version)
        if text is not None:
            return text
        found = self._version(object_id)
        if found is None or self._recalls is None or str(found.content_hash) != version:
            return None
        with contextlib.suppress(StoreError):
            return self._recalls.objects.content(found)
        return None

    def active_texts(self) -> tuple[tuple[PooledObject, str], ...]:
        """Return the active objects with their contents, in the order in which they came in."""
        state = self.state
        found = ((state.index[one.id], self.text(one.id, one.version)) for one in state.active)
        return tuple((one, text) for one, text in found if text is not None)

    @property
    def fold(self) -> PoolFold:
        """The pools' fold for a pooled window."""
        return self._pure

    @cached_property
    def of_window(self) -> "SessionPools":
        """The same pools by what the branch alone tells: no file is read, and nothing of other sessions is brought in."""
        return SessionPools(self._log, self._outside, lambda: None, None, self._rules)

    # --- acts ---

    def read(self, path: str, signal: Signal | None = None) -> PoolReply:
        """Read a file: index, list and activate the file. An active file is read again if the file has changed.

        A text that must not be stored is returned in the reply, and enters no pool.
        """
        try:
            document, key, is_hidden = self._document(path, signal)
        except CallerError as problem:
            return PoolReply(str(problem), is_error=True)
        if is_hidden:
            return PoolReply(document.text)
        if not document.is_text:
            act = self._act_of_file("list", key, document)
            return PoolReply(NO_TEXT, act.id, is_error=True, failure=self._note(PoolNote((act,))))
        before = self.state.index.get(self._pure.file_id(self._walk, key))
        was_active = before is not None and self.state.is_active(before.id)
        act = self._act_of_file("activate", key, document)
        is_same = was_active and before is not None and before.version == act.version
        told = "is active already, and unchanged" if is_same else "is refreshed" if was_active else "is active"
        text = f"{key} {told} as {act.id} ({act.chars} characters). To see it again later, use activate with this id."
        note = PoolNote((act, *self._acts_of_links(document.text, key)), trace_of_answer(text))
        return PoolReply(text, act.id, failure=self._note(note))

    def activate(self, name: str, signal: Signal | None = None, *, told: bool = False) -> PoolReply:
        """Show an object whole, by its id, nickname or path. What was only discovered is read now.

        The chat of an earlier session is shown in parts: `CHAT#summary`, or turns of it, `CHAT#3-5`.

        told: whether the reply holds the content, because the conversation goes on before another window is made.
        """
        return self._bring(name, "activate", signal, told=told)

    def load_metadata(self, name: str) -> PoolReply:
        """List an object of the store, or of the index, without its content."""
        return self._bring(name, "list", None)

    def deactivate(self, name: str) -> PoolReply:
        """Deactivate an object. The object stays listed."""
        one = self._named(name)
        if one is None:
            stored = self._version(name)
            if stored is not None and is_locked(sighting_of(stored)):
                return _locked(stored.id)
            return self._unknown(name)
        if is_locked(one):
            return _locked(one.id)
        return PoolReply(
            f"Deactivated {one.id}", one.id, failure=self._note(PoolNote((PoolAct("deactivate", one.id),)))
        )

    def pin(self, name: str, signal: Signal | None = None, *, told: bool = False) -> PoolReply:
        """Show an object until it is unpinned or deactivated. told: as in `activate`, if it was not active."""
        one = self._named(name)
        if told and one is not None and self.state.is_active(one.id):
            return self._wish("pin", one.id, f"Pinned {one.id}")
        brought = self._bring(name, "activate", signal, told=told)
        if brought.is_error:
            return brought
        text = f"Pinned {brought.id}" + (brought.text.removeprefix(f"Activated {brought.id}") if told else "")
        return self._wish("pin", brought.id, text)

    def unpin(self, name: str) -> PoolReply:
        """Take back a pin. The object stays as long as one that was activated now."""
        one = self._named(name)
        if one is None:
            return self._unknown(name)
        return self._wish("unpin", one.id, f"Unpinned {one.id}")

    def begin_epoch(self) -> str | None:
        """Write a new metadata block. Return the reason if the store refuses, else None."""
        return self._note(PoolNote((PoolAct("epoch"),)))

    def note_request(self, at: float | None = None) -> str | None:
        """Record that a request with the messages so far is sent. Return the reason if the store refuses, else None.

        at: seconds since 1970, None if unknown.
        """
        sent = RequestSent(0, self.state.messages, at)
        try:
            with self._log.turn():
                self._log.add(sent)
        except StoreError as problem:
            self._log.add(sent)
            return f"{type(problem).__name__}: {problem}"
        return None

    def find(self, name: str) -> PooledObject | None:
        """Return the object of this id, nickname or path in the branch's index; None if there is none."""
        return self._named(name)

    # --- parts of acts ---

    def _bring(self, name: str, act: PoolActKind, signal: Signal | None, *, told: bool = False) -> PoolReply:
        one, found = self._named(name), None
        if one is None and (part := self._part_of_chat(name)) is not None:
            one, found = part, act_about(act, part)
        if one is None:
            stored = self._version(name)
            if stored is None:
                return self._unknown(name)
            one = sighting_of(stored)
            found = act_about(act, one)
        if is_locked(one):
            return _locked(one.id)
        found = replace(found or PoolAct(act, one.id), told=told)
        if act == "list":
            return PoolReply(f"Listed {one.id}", one.id, failure=self._note(PoolNote((found,))))
        return self._activate(one, found, signal)

    def _activate(self, one: PooledObject, found: PoolAct, signal: Signal | None) -> PoolReply:
        """Show an object, a file as it is now. A file that cannot be read is shown as it was known."""
        try:
            seen = self._seen(one, signal)
        except CallerError as problem:
            if one.content == "unread":
                return PoolReply(str(problem), one.id, is_error=True)
            seen = None
        view = one.view if seen is not None and seen.version == one.version else ()
        found = found if seen is None else replace(seen, id=one.id, told=found.told, view=view)
        version = found.version if found.type else one.version
        if (found.content if found.type else one.content) != "text" or not version:
            return PoolReply(NO_TEXT, one.id, is_error=True)
        text = self.text(one.id, version) or ""
        links = self._acts_of_links(text, one.path)
        content = f"\n{content_text(one.id, text)}" if found.told else ""
        return PoolReply(f"Activated {one.id}{content}", one.id, failure=self._note(PoolNote((found, *links))))

    def _seen(self, one: PooledObject, signal: Signal | None) -> PoolAct | None:
        """Return the activation of the current state of a file; None without such a file. Raises CallerError."""
        if not one.path or one.deleted or self._files() is None:
            if one.content == "unread":
                raise BadInput(f"{one.path or one.id} was not read yet, and this session cannot read it")
            return None
        document, key, is_hidden = self._document(one.path, signal)
        if is_hidden:
            raise BadInput(f"{one.path} must not be stored, so it cannot be active; read it")
        return self._act_of_file("activate", key, document)

    def _document(self, path: str, signal: Signal | None) -> tuple[Document, str, bool]:
        """Store and return a file's text, with path key and privacy flag. Raises CallerError."""
        files = self._files()
        if files is None or self._outside is None:
            raise BadInput(f"this session has no working folder, so it cannot read {path}")
        located = files.locate(path, offset=1)
        document = files.read(located, signal)
        is_hidden = located.excluded or self._log.privacy.is_private(document.text)
        if is_hidden:
            self._log.withhold(document.text)
        elif document.is_text:
            with contextlib.suppress(StoreError):
                self._outside.blobs.put(document.content)
        return document, located.key, is_hidden

    def _act_of_file(self, act: PoolActKind, key: str, document: Document) -> PoolAct:
        path = absolute_path(key, self._folder)
        object_id = self._pure.file_id(self._walk, path)
        kind = file_type(path, binary=not document.is_text)
        if not document.is_text:
            return PoolAct(act, object_id, "file", "none", path=path, file_type=kind)
        return PoolAct(act, object_id, "file", "text", document.hash.hex, len(document.text), path, kind)

    def _acts_of_links(self, text: str, path: str) -> Iterator[PoolAct]:
        """Yield the listing of objects that a text names, and that the branch does not know: files, and stored objects.

        A file comes first: of the notes of one name in several projects, the first has the name as nickname.
        """
        for name in links_in(text, path):
            if any(self._named(one) is not None for one in (name, *paths_of(name, path))):
                continue
            file, is_hidden = self._act_of_link(name, path)
            found = self._version(name) if file is None and not is_hidden else None
            if file is not None:
                yield file
            elif found is not None and not found.locked:
                yield act_about("list", sighting_of(found))

    def _act_of_link(self, name: str, path: str) -> tuple[PoolAct | None, bool]:
        """Return the listing of the file that a link names, and whether the file must not be stored."""
        for candidate in paths_of(name, path):
            if "." in posixpath.basename(candidate):
                with contextlib.suppress(CallerError):
                    document, key, is_hidden = self._document(candidate, None)
                    act = self._act_of_file("list", key, document)
                    return None if is_hidden else replace(act, content="unread", version="", chars=0), is_hidden
        return None, False

    def _named(self, name: str) -> PooledObject | None:
        walk, name = self._walk, name.strip(" \t\r\n\"'`")
        found = walk.state.index.get(name)
        if found is not None:
            return found
        by_path = walk.paths.get(absolute_path(name, self._folder))
        if by_path is not None:
            return walk.state.index[by_path]
        named = next((one for one in walk.state.pool() if name and one.nickname == name), None)
        return self._at_path_of(self._version(name)) if named is None else named

    def _at_path_of(self, version: Version | None) -> PooledObject | None:
        """Return the file at the path of a stored one, if the path means this file only.

        The branch does not tell on which machine the session works, so it may know the file by another id.
        """
        path = None if version is None else version.metadata.get("path")
        if version is None or not isinstance(path, str) or self._recalls is None:
            return None
        walk = self._walk
        with contextlib.suppress(CallerError, HostError, StoreError):
            if self._recalls.objects.named(path).id == version.id:
                return walk.state.index.get(walk.paths.get(path, ""))
        return None

    def _version(self, name: str) -> Version | None:
        with contextlib.suppress(CallerError, HostError, StoreError):
            return None if self._recalls is None else self._recalls.objects.get(name.strip(" \t\r\n\"'`"))
        return None

    def _part_of_chat(self, name: str) -> PooledObject | None:
        """Return a part of an earlier session's chat: `CHAT#summary`, or turns, `CHAT#3` or `CHAT#3-5`."""
        asked = _PART.fullmatch(name.strip(" \t\r\n\"'`"))
        chat = None if asked is None else self._version(asked[1])
        is_own = chat is not None and chat.metadata.get("session_id") == self._log.name
        if asked is None or chat is None or chat.type != "chat" or is_own or self._recalls is None:
            return None
        objects, short = self._recalls.objects, ""
        with contextlib.suppress(CallerError, StoreError):
            if asked[2] == "summary":
                text, short = objects.summaries(chat) or ("", "")
            else:
                text = objects.turns_text(chat, int(asked[3]), int(asked[4] or asked[3]))
            if text and self._outside is not None and not self._log.privacy.is_private(text):
                version = self._outside.blobs.put(text.encode("utf-8", "surrogatepass"))
                return PooledObject(
                    f"{chat.id}#{asked[2]}", "chat_part", "text", version.hex, len(text), args=short[:_LONGEST_ARGS]
                )
        return None

    def _unknown(self, name: str) -> PoolReply:
        return PoolReply(f"Object not found: {name}", is_error=True)

    def _wish(self, act: Act, object_id: str, text: str) -> PoolReply:
        return PoolReply(text, object_id, failure=self._note(PinNote(Wish(act, object_id).at(self._log.leaf))))

    def _note(self, note: Note) -> str | None:
        if isinstance(note, PoolNote):  # who follows the journal later gets the same pools
            bounds = None if self._rules == USUAL else self._rules.bounds
            note = replace(note, bounds=bounds, folder=self._folder)
        try:
            with self._log.turn():
                self._log.note(note)
        except StoreError as problem:
            self._log.note(note)  # holds in memory at once; the next `keep` stores it
            return f"{type(problem).__name__}: {problem}"
        return None


def _locked(object_id: str) -> PoolReply:
    return PoolReply(f"Object is locked: {object_id}", object_id, is_error=True)
