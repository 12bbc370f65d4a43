"""Redact the messages of a session for the journal, and restore their text for the window (law 9).

Rules of this file
------------------
1. Decided by the branch alone (law 6): a result is private because of its call in the window, and because of records of
   reads.
2. A result whose call is no longer in the window is treated as text, and text is never evicted.
"""

import contextlib
import secrets
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from pagein.engine.log.pageout import Pager
from pagein.engine.log.request_draft import Cell
from pagein.engine.log.state import State
from pagein.errors import StoreError
from pagein.model.documents import Document
from pagein.model.entries import NoteEntry
from pagein.model.journal_notes import WithheldReadNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.text_removal import PrivateSpan
from pagein.policy.privacy.erased_texts import ErasedTexts
from pagein.policy.privacy.exclusions import SessionRedaction, digest_of, holds_keys, keys_in, without_in_json

_KEY_BYTES: Final = 32
_FILES: Final = 64
"""Files of which it is remembered whether they are private."""
_LARGE: Final = 1 << 17
"""Bytes from which the search for keys takes longer than handing the text to another thread."""
_LARGEST: Final = 1 << 25
"""Bytes up to which a text is held for a search that nobody may ask for."""
_AHEAD: Final = 4
"""Searches that were begun and not asked for yet."""
_threads: Final = ThreadPoolExecutor(thread_name_prefix="pagein-keys")


class Privacy:
    """Redaction for one session. Thread-safe.

    is_fresh: True while the session holds the store, so that nothing can be erased meanwhile.
    """

    def __init__(self, pager: Pager, patterns: tuple[str, ...]) -> None:
        self.is_fresh = False
        self._pager = pager
        self._own = b""
        self._mark = 0
        self._mark = self._forgettings()
        self._forgotten: tuple[int | None, ErasedTexts] = None, ErasedTexts()
        self._files: dict[ContentHash, bool] = {}
        self._ahead: dict[int, tuple[Document, Future[bool]]] = {}  # by the identity of the document
        self.withholding = SessionRedaction(patterns, self._key)

    def finds(self, text: str) -> Sequence[PrivateSpan]:
        """Return the spans of a text that must not be stored: keys and erased texts."""
        found = keys_in(text)
        forgotten = self._forgotten[1].finds(text)
        if not forgotten:
            return found
        apart = [one for one in found if all(one.end <= other.start or other.end <= one.start for other in forgotten)]
        return sorted((*apart, *forgotten), key=lambda one: one.start)

    @property
    def is_outdated(self) -> bool:
        """True when a text was erased since the session was opened."""
        return self._forgettings() != self._mark

    def check(self) -> None:
        """Raise StoreError if a text was erased since the session was opened, because the session's memory may hold the
        text.
        """
        if not self.is_fresh and self.is_outdated:
            raise StoreError("something was ordered to be forgotten since this session was opened; open it again")

    def begin_turn(self) -> None:
        """Look for erased texts once for a whole turn, which ends with `is_fresh = False`. Raises as `check`."""
        if not self.is_fresh:
            self.check()
            self._reload(self._mark)
            self.is_fresh = True

    def _look_again(self) -> None:
        """Reload the erased texts if there are more: once a turn of the session or a message, not for each text."""
        if self.is_fresh:
            return
        self._reload(self._forgettings())

    def _reload(self, count: int) -> None:
        if count and self._forgotten[0] != count:
            with contextlib.suppress(StoreError):
                self._forgotten = count, self._pager.forgotten()
                self.withholding.finds = self.finds
                self._files.clear()

    def _forgettings(self) -> int:
        try:
            return self._pager.forgettings()
        except StoreError:  # an unreachable store keeps nothing either
            return self._mark

    def is_private(self, text: str) -> bool:
        """Return whether a text holds spans that must not be stored."""
        self._look_again()
        return bool(self.withholding.finds(text))

    def begin_search(self, document: Document) -> None:
        """Begin to look for keys in a large text, for `is_private_file`. The search needs nothing of Python's lock, and
        does not wait for the text's hash.
        """
        if not _LARGE <= len(document.content) <= _LARGEST or not document.is_text:
            return
        if len(self._ahead) >= _AHEAD:  # of files about which nobody asked after all
            self._ahead.clear()
        with contextlib.suppress(RuntimeError):  # at the process's end no thread starts: `is_private_file` looks itself
            self._ahead[id(document)] = document, _threads.submit(holds_keys, document.content)

    def is_searching(self, document: Document) -> bool:
        """Return whether a search was begun in this text, and nobody asked for its outcome yet."""
        return id(document) in self._ahead

    def is_private_file(self, document: Document) -> bool:
        """Return whether the text of a file holds such spans. The pages of a large file ask for the same text."""
        self._look_again()
        _, search = self._ahead.pop(id(document), (document, None))
        known = self._files.get(document.hash)
        if known is None:
            has_keys = bool(keys_in(document.text)) if search is None else search.result()
            known = has_keys or bool(self._forgotten[1].finds(document.text))
            if len(self._files) >= _FILES:
                self._files.clear()
            self._files[document.hash] = known
        return known

    def fingerprint(self, text: str) -> str:
        """Return a keyed digest of a text. Without the store's secret, the digest reveals nothing."""
        return digest_of(self._key(), text)

    def redact_note(self, data: str) -> str:
        """Redact a fact, given as JSON text."""
        self._look_again()
        finds = self.withholding.finds
        return without_in_json(data, finds) if finds(data) else data

    def redact_message(self, state: State, message: Message) -> Message:
        """Redact a new message for the journal. The state is the state before the message."""
        asked = {block.call_id for block in message.blocks if isinstance(block, ToolResult)}
        private = _private(state.draft.tip, asked) if asked else frozenset()
        self.withholding.shown |= state.withheld
        return self.redact(message, private)

    def redact(self, message: Message, private: Collection[str]) -> Message:
        """Redact a message. private: calls with results to leave out, because they may show an excluded file."""
        self._look_again()
        return self.withholding.of(message, private)

    def shows(self, message: Message) -> Message:
        """Return a journaled message with the client's full text, as far as this process knows the text."""
        return self.withholding.shows(message)

    def note_excluded_read(self, state: State, text: str) -> NoteEntry | None:
        """Remember a text read from an excluded file. Returns the note to journal; None if the branch has the note."""
        digest = self.withholding.add(text)
        return None if digest in state.withheld else NoteEntry.of(WithheldReadNote(digest))

    def _key(self) -> bytes:
        """Return the store's secret.

        If the store fails, return a key of this process; other processes then cannot recognise the texts.
        """
        try:
            return self._pager.secret()
        except StoreError:
            self._own = self._own or secrets.token_bytes(_KEY_BYTES)
            return self._own


def withheld_calls(message: Message) -> set[str]:
    """Return the ids of the calls in a journaled message that may show an excluded file."""
    calls = (block for block in message.blocks if isinstance(block, ToolCall))
    return {one.id for one in calls if one.withheld is not None and not one.withheld.part}


def _private(tip: Cell | None, asked: set[str]) -> frozenset[str]:
    """Return the calls that may show an excluded file. Costs a single step if the last message made the calls, as
    usual.
    """
    found: set[str] = set()
    waiting = set(asked)
    while tip is not None and waiting:
        calls = {block.id for block in tip.piece.message.blocks if isinstance(block, ToolCall)} & waiting
        if calls:
            waiting -= calls
            found |= calls & withheld_calls(tip.piece.message)
        tip = tip.before
    return frozenset(found)
