"""Follow the journal of one session, and write the objects made from the entries.

Rules of this file
------------------
1. The objects depend on the entries alone, in the order of their places. Following an entry again writes nothing new.
2. A thread is a conversation of its own: it begins with a message without messages before it. A session has several
   where the client asks for something beside its main conversation. Each thread has a chat.
3. After a rewind, the next version of the chat shows the new branch; the old one stays in the history.
4. A file gets a version when a session shows, writes, changes or deletes it in a form that the session did not know.
5. The answer to the last request is the last step of its chat until a message follows: the answer as the client sends it
   back takes its place, and an answer that the client does not send back leaves the chat.
6. A version that someone asked for (`save_open_chats`) changes no state, so all later versions are the same without it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pagein.memory.artifacts import save_artifact
from pagein.memory.chat_pages import STEPS_OF_VERSION, shortened, without_pictures, without_results, words_of
from pagein.memory.file_versions import FileVersions
from pagein.memory.object_orders import is_order
from pagein.memory.object_writer import Cause, ObjectWriter
from pagein.memory.session_machines import SessionMachines
from pagein.memory.session_sets import SessionSets
from pagein.memory.session_summary import SessionSummary, title_of
from pagein.memory.threads import START, ThreadState
from pagein.model.chats import UNANSWERED, ChatCall
from pagein.model.codec import decode_message
from pagein.model.delegation_notes import ChildResultNote
from pagein.model.entries import CompactionEntry, Entry, EntryId, MessageEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import ClientNote, PrefixDigests, ReadNote, SystemPromptNote
from pagein.model.memory_notes import AnswerNote, RecordedNote
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.object_names import is_random, object_name, request_name, second_call_name
from pagein.model.pool_notes import PoolNote
from pagein.model.references import Reference
from pagein.model.shapes import text_draft, toolcall_draft
from pagein.model.versions import Draft, Provenance, Version
from pagein.policy.clients.client_prompts import has_summary, user_words
from pagein.policy.clients.known_files import NO_TEXTS, changes_unseen, file_deeds
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import OTHER, PROFILES

_KEPT: Final = 512
"""Number of entries whose states are kept in memory; a rewind to an older entry follows its branch again."""


class SessionIndex:
    """The objects of one session, up to a place of its journal. Not thread-safe.

    place: the last entry that was followed.
    """

    def __init__(self, name: str, writer: ObjectWriter, machines: SessionMachines) -> None:
        self.name = name
        self.place = 0
        self._writer = writer
        self._machines = machines
        self._files = FileVersions(name, writer, machines)
        self._sets = SessionSets(name, writer, machines)
        self._summary = SessionSummary()
        self._told: tuple[SessionSummary, Mapping[str, tuple[str, ...]]] | None = None
        self._threads: dict[EntryId, ThreadState] = {}
        self._tips: dict[EntryId, EntryId] = {}
        self._ends: dict[EntryId, EntryId] = {}  # the tips, or the answers behind them
        self._open: set[EntryId] = set()
        self._began = 0.0
        self._now = 0.0
        self._told_at = 0.0

    def follow(self, place: int, entry: Entry) -> None:
        """Write the objects made from an entry. Raises StoreError."""
        self._files.go_to(place)
        self._now = self._time_of(entry)
        self._began = self._began or self._now
        thread = START if entry.parent is None else self._thread_at(entry.parent)
        match entry.body:
            case MessageEntry(message):
                thread = self._save_left_branch(thread, entry)
                thread = replace(self._follow_message(thread, entry, message), last=entry.id, answer=None, saved=None)
                self._tips[thread.name] = entry.id
                self._note_end(thread, entry)
            case NoteEntry() as note:
                thread = self._follow_note(thread, entry, note)
            case CompactionEntry(lost=True):
                thread = replace(thread, texts=NO_TEXTS)
            case CompactionEntry():
                thread = replace(thread, retells=True)
            case RequestSent(moment=float() as moment) if entry.at is None:
                self._now = max(self._now, moment)  # entries of older stores have no times
            case _:
                pass
        self._threads[entry.id] = thread
        if len(self._threads) > _KEPT:
            del self._threads[next(iter(self._threads))]
        self._sets.follow(place, entry)
        self._save_session(entry)
        self.place = place

    def _note_end(self, thread: ThreadState, entry: Entry) -> None:
        self._ends[thread.name] = entry.id
        if thread.is_open:
            self._open.add(thread.name)
        else:
            self._open.discard(thread.name)

    @property
    def is_open(self) -> bool:
        """Whether the newest steps of a chat are in no version of it."""
        return bool(self._open)

    def save_open_chats(self, order: EntryId) -> None:
        """Write a version of each chat with steps newer than the last version.

        order: id of the entry with the order to do so.
        """
        for name in sorted(self._open):
            end = self._ends[name]
            thread = self._thread_at(end)
            at = max(self._now, 0.0 if thread.chat is None else thread.chat.at)  # it is the latest from here on
            self._write_chat(thread, request_name("asked", order, name), Cause(self.name, end, at, "asked"))
        self._open.clear()

    def _save_left_branch(self, thread: ThreadState, entry: Entry) -> ThreadState:
        """Before a rewind, write the chat with the steps that no version has yet. Return the thread at the new branch.

        A note after an earlier entry is no rewind: what an answer used is told after the next request began.
        """
        if not self._is_left(thread):
            return thread
        left = self._thread_at(self._ends[thread.name])
        if left.is_open:
            self._save_chat(left, entry, "chat before")
        return replace(thread, saved=None)  # it is in an older version

    def _is_left(self, thread: ThreadState) -> bool:
        """Return whether the conversation went on from another place than the end of this thread."""
        return bool(thread.name) and self._tips.get(thread.name) not in (None, thread.last)

    def _thread_at(self, entry_id: EntryId) -> ThreadState:
        """Return the state after an entry; after a rewind to an old entry, follow the branch of this entry again."""
        if entry_id not in self._threads:
            news = self._writer.store.news(self.name)
            entries = {one.id: (place, one) for place, one in news if isinstance(one, Entry)}
            branch: list[tuple[int, Entry]] = []
            at: EntryId | None = entry_id
            while at is not None and (found := entries.get(at)) is not None:
                branch.append(found)
                at = found[1].parent
            again = SessionIndex(self.name, self._writer, self._machines)
            again._began = self._began
            for place, one in reversed(branch):
                again.follow(place, one)
            self._threads[entry_id] = again._threads.get(entry_id, START)
        return self._threads[entry_id]

    def _time_of(self, entry: Entry) -> float:
        told = entry.at
        if told is None and isinstance(entry.body, MessageEntry):
            told = entry.body.message.at
        return self._now if told is None else told

    def _cause(self, entry: Entry, reason: str) -> Cause:
        return Cause(self.name, entry.id, self._now, reason)

    # --- notes ---

    def _follow_note(self, thread: ThreadState, entry: Entry, entry_note: NoteEntry) -> ThreadState:
        note = entry_note.note
        if isinstance(note, ClientNote) and note.profile:
            self._summary = replace(self._summary, harness=self._summary.harness or note.profile)
            return replace(thread, client=note.profile)
        if isinstance(note, PrefixDigests):
            self._summary = self._summary.with_model(note.model)
        if isinstance(note, RecordedNote):
            self._summary = self._summary.with_recording(note)
        if isinstance(note, SystemPromptNote):
            self._summary = self._summary.with_folder((note.text,))
            self._save_system_prompt(thread, entry, note.text)
        if isinstance(note, AnswerNote):
            thread = self._with_last_answer(thread, entry, note)
        if isinstance(note, ChildResultNote) and note.artifact:
            save_artifact(self._writer, note, replace(self._cause(entry, "extract"), at=note.at))
        if isinstance(note, ReadNote):
            self._files.note_read(note, self._cause(entry, "read"), self._origin(thread))
        if isinstance(note, PoolNote):
            self._files.note_pool(note, self._cause(entry, "read"), self._origin(thread))
        return thread

    def _with_last_answer(self, thread: ThreadState, entry: Entry, note: AnswerNote) -> ThreadState:
        """Return the thread with the answer to the last request. An answer without calls ends the turn."""
        message = decode_message(note.message.encode("utf-8", "surrogatepass"))
        if not thread.name or self._is_left(thread) or not isinstance(message, Message):
            return thread
        asks = any(isinstance(block, ToolCall) for block in message.blocks)
        stop = UNANSWERED if asks else message.stop
        # the note has the time of the request
        self._now = max(self._now, message.at or 0.0, 0.0 if thread.chat is None else thread.chat.at)
        thread = replace(thread, answer=without_pictures(replace(message, at=self._now or None, stop=stop)))
        thread = thread if asks else self._save_chat(thread, entry)
        self._note_end(thread, entry)
        return thread

    # --- messages ---

    def _follow_message(self, thread: ThreadState, entry: Entry, message: Message) -> ThreadState:
        words = user_words(message)
        thread = replace(thread, retells=thread.retells and message.role != "assistant" and not has_summary(message))
        self._summary = self._summary.with_message(message, words)
        if not thread.name:
            thread = replace(thread, name=entry.id)
            self._summary = replace(self._summary, chats=(*self._summary.chats, self._chat_id(thread)))
        for number, block in enumerate(message.blocks):
            if isinstance(block, ToolResult):
                thread = self._follow_result(thread, entry, number, block)
        if message.role != "assistant":
            thread = replace(thread, texts=thread.texts.told(message))
        rest = without_results(message if message.at is not None else replace(message, at=self._now or None))
        if message.role == "assistant":
            return self._follow_answer(thread, entry, message, rest)
        if thread.saved is not None:  # the client went on without the answer
            thread = replace(thread, answer=None, pages=replace(thread.pages, unsaved=STEPS_OF_VERSION))
        thread = replace(thread, answer=None)
        if rest is None:
            return self._save_chat_if_due(thread, entry)
        if message.role == "system":
            prompt = "\n".join(block.text for block in message.blocks if isinstance(block, Text))
            self._summary = self._summary.with_folder((prompt,))
            self._save_system_prompt(thread, entry, prompt)
        if not (words or not thread.pages.turn or not thread.pages.place):
            return self._save_chat_if_due(replace(thread, pages=thread.pages.with_step(rest)), entry)
        pages, texts = thread.pages.with_said(rest, has_words=bool(words)), thread.texts.in_doubt()
        thread = replace(thread, pages=pages, texts=texts, title=thread.title or title_of(words))
        thread = self._save_chat(thread, entry)
        return self._save_words(thread, entry, words) if words else thread

    def _follow_answer(self, thread: ThreadState, entry: Entry, message: Message, rest: Message | None) -> ThreadState:
        calls, texts = thread.calls, thread.texts
        asked = [block for block in message.blocks if isinstance(block, ToolCall)]
        profile = self._profile(thread)
        for call in asked:
            calls = calls.put(call.id, call)
            texts = texts.in_doubt() if changes_unseen(profile, call) else texts  # calls of an answer run in any order
        pages = thread.pages if rest is None else thread.pages.with_step(rest)
        is_saved = rest is not None and thread.saved is not None and words_of(rest) == words_of(thread.saved)
        if is_saved and not asked:  # the newest version has this step
            pages = replace(pages, unsaved=0)
        thread = replace(thread, calls=calls, texts=texts, pages=pages, answer=None)
        is_due = (not asked and not is_saved) or thread.chat is None or thread.pages.is_due
        return self._save_chat(thread, entry) if is_due else thread

    def _follow_result(self, thread: ThreadState, entry: Entry, number: int, result: ToolResult) -> ThreadState:
        if thread.chat is None:  # a thread that begins with a result
            thread = self._save_chat(thread, entry, "first chat")
        page = thread.pages.name if thread.chat is not None and thread.pages.name in thread.chat.additional else None
        chat_ref = None if thread.chat is None else thread.chat.static(page, relation="chat")
        call = thread.calls.get(result.call_id) or ToolCall(result.call_id, result.name, "{}")
        profile = self._profile(thread)
        texts, deeds = file_deeds(thread.texts, profile, self._summary.folder, call, result)
        is_failure = profile.is_failure(call, result)
        request = request_name("call", self.name, entry.id, str(number))
        known = self._writer.known(request)
        copied = self._copied_call(call) if known is None else None
        if copied is not None:
            self._files.note_copy(copied)
            return self._with_call(replace(thread, texts=texts), call, copied)
        deeds = tuple(
            self._files.weigh_deed(one, self._cause(entry, one.deed), (number, place))
            for place, one in enumerate(deeds)
        )
        for one in deeds:
            texts = texts.after(one) if one.known == "likely" else texts
        name = self._call_name(entry, call) if known is None else known.id
        origin = self._origin(thread)
        files = tuple(
            self._files.note_deed(one, self._cause(entry, one.deed), origin, name, (number, place))
            for place, one in enumerate(deeds)
        )
        draft = toolcall_draft(
            replace(call, id=name),
            replace(result, is_error=is_failure),
            chat=chat_ref,
            files=[one for one in files if one is not None],
        )
        metadata = {**draft.metadata, "turn": thread.pages.turn, "place": thread.pages.place + 1}
        version = self._writer.write(request, replace(draft, metadata=metadata), self._cause(entry, "result"))
        return self._with_call(replace(thread, texts=texts), call, version)

    @staticmethod
    def _with_call(thread: ThreadState, call: ToolCall, version: Version) -> ThreadState:
        """Return the thread after a call, given its object."""
        status = str(version.metadata.get("status") or "ok")
        step = ChatCall(call.id, call.name, shortened(call.arguments), status, version.static(relation="call"))
        return replace(thread, calls=thread.calls.without(call.id), pages=thread.pages.with_step(step))

    def _profile(self, thread: ThreadState) -> Profile:
        return PROFILES.get(thread.client or self._summary.client, OTHER)

    def _copied_call(self, call: ToolCall) -> Version | None:
        """Return the object of the same call in an earlier place: a fork or a compaction repeats earlier calls."""
        known = self._writer.store.current(call.id) if is_random(call.id) else None
        if known is None or known.type != "toolcall" or known.metadata.get("tool") != call.name:
            return None
        # the names that people give later make versions too: a chat refers to the call itself, then and when it is made again
        made = (one for one in reversed(self._writer.store.history(known.id)) if not is_order(one))
        return next(made, known)

    def _call_name(self, entry: Entry, call: ToolCall) -> str:
        """Return the id for a call's object: the id from the provider, unless another call has the same id."""
        free = call.id.strip() and len(call.id) <= 512 and self._writer.store.current(call.id) is None  # noqa: PLR2004 - the longest id
        return call.id if free else second_call_name(call.id, self.name, entry.id)

    def _origin(self, thread: ThreadState) -> Mapping[str, object]:
        """Return where in the chat something happened, as metadata."""
        found: dict[str, object] = {"turn": thread.pages.turn}
        if thread.chat is not None:
            found["turn_ref"] = thread.chat.static(relation="chat")
        if thread.user is not None:
            found["user_ref"] = thread.user
        return found

    # --- objects of the conversation ---

    def _chat_id(self, thread: ThreadState) -> str:
        return object_name("chat", self.name, thread.name, at=self._began)

    def _save_chat_if_due(self, thread: ThreadState, entry: Entry) -> ThreadState:
        return self._save_chat(thread, entry) if thread.pages.is_due else thread

    def _save_chat(self, thread: ThreadState, entry: Entry, request: str = "chat") -> ThreadState:
        version = self._write_chat(thread, request_name(request, self.name, entry.id), self._cause(entry, "turn"))
        return replace(thread, chat=version, pages=thread.pages.after_version(), saved=thread.answer)

    def _write_chat(self, thread: ThreadState, request: str, cause: Cause) -> Version:
        told = thread.told
        fields = told.fields()
        held = {} if thread.chat is None else thread.chat.additional
        draft = Draft(
            id=self._chat_id(thread),
            type="chat",
            metadata={
                "session_ref": Reference(self._session_id(), relation="session"),
                "session_id": self.name,
                "turn_count": told.turn,
                "step_count": told.count,
                "title": thread.title,
            },
            additional=fields,
            carried={name: digest for name, digest in held.items() if name not in fields},
            provenance=Provenance(self.name, "system"),
        )
        return self._writer.write(request, draft, cause)

    def _save_words(self, thread: ThreadState, entry: Entry, words: str) -> ThreadState:
        if (repeated := thread.repeated(words)) is not None:
            return replace(thread, user=repeated)
        name = object_name("user", self.name, entry.id, at=self._now)
        draft = text_draft(name, "user", words, origin="user-input", generator="human")
        chat = thread.chat and thread.chat.static(relation="chat")
        told = {"title": title_of(words), "chat_ref": chat, "turn": thread.pages.turn, "session_id": self.name}
        draft, request = replace(draft, metadata=told), request_name("user", self.name, entry.id)
        version = self._writer.write(request, draft, self._cause(entry, "words"))
        return thread.with_words(words, version.static(relation="asked"))

    def _save_system_prompt(self, thread: ThreadState, entry: Entry, text: str) -> None:
        name = object_name("system_prompt", self.name, thread.name, at=self._began)
        draft = text_draft(name, "system_prompt", text, origin=self.name, generator="system")
        request = request_name("system", self.name, entry.id)
        self._writer.write(request, replace(draft, metadata={"session_id": self.name}), self._cause(entry, "prompt"))

    def _session_id(self) -> str:
        return object_name("session", self.name, at=self._began)

    def _save_session(self, entry: Entry) -> None:
        """Write a version of the session object if a fact of the session changed."""
        summary, sets = told = self._summary, self._sets.fields
        if told == self._told or not summary.chats:
            return
        chats = tuple(Reference(one, relation="chat") for one in summary.chats)
        metadata: dict[str, object] = {
            "session_id": self.name,
            "harness": summary.harness,
            "title": summary.title,
            "models": summary.models,
            "chat_ref": chats[0],
            "chats": chats,
            **({"cwd": summary.folder} if summary.folder else {}),
            **({"parent": summary.parent} if summary.parent else {}),
        }
        name, origin = self._session_id(), Provenance(self.name, "system")
        draft = Draft(id=name, type="session", metadata=metadata, additional=sets, provenance=origin)
        # the times of entries may go back, those of these versions do not
        self._told_at = max(self._told_at, self._now)
        cause = replace(self._cause(entry, "session"), at=self._told_at)
        self._writer.write(request_name("session", self.name, entry.id), draft, cause)
        self._told = told
