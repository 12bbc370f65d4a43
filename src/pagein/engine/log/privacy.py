"""What of a session's messages is journaled, and what the window shows beside it (law 9).

Rules of this file
------------------
1. Told by the branch alone (law 6): whether a result is private follows from its call in the window, and from what was noted of reads.
2. A result whose call is not in the window any more is nobody's output; it is text, and text never leaves.
"""

import contextlib
import secrets
from collections.abc import Sequence
from typing import Final

from pagein.engine.log.pageout import Pager
from pagein.engine.log.rendering import Cell
from pagein.engine.log.state import WITHHELD_READ, State
from pagein.errors import StoreError
from pagein.model.entries import NoteEntry
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.text_removal import PrivateSpan
from pagein.policy.privacy.erasure import ErasedTexts
from pagein.policy.privacy.redaction import SessionRedaction, without_in_json
from pagein.policy.privacy.secrets import keys_in

_KEY_BYTES: Final = 32


class Privacy:
    """The private side of one session. Any number of threads may use it."""

    def __init__(self, pager: Pager, patterns: tuple[str, ...]) -> None:
        self._pager = pager
        self._own = b""
        self._mark = 0
        self._mark = self._forgettings()
        self._forgotten: tuple[int | None, ErasedTexts] = None, ErasedTexts()
        self.withholding = SessionRedaction(patterns, self._key, self.finds)

    def finds(self, text: str) -> Sequence[PrivateSpan]:
        """What of a text must not be stored, whatever it comes from: keys, and what was ordered to be forgotten."""
        found = keys_in(text)
        forgotten = self._forgotten[1].finds(text)
        if not forgotten:
            return found
        apart = [one for one in found if all(one.end <= other.start or other.end <= one.start for other in forgotten)]
        return sorted((*apart, *forgotten), key=lambda one: one.start)

    @property
    def is_outdated(self) -> bool:
        """Whether something was ordered to be forgotten since the session was opened."""
        return self._forgettings() != self._mark

    def check(self) -> None:
        """Raises StoreError where something was forgotten since the session was opened: what it remembers may not be stored any more."""
        if self.is_outdated:
            raise StoreError("something was ordered to be forgotten since this session was opened; open it again")

    def _look_again(self) -> None:
        """Know what was forgotten since: asked for once a message, not for each text in it."""
        count = self._forgettings()
        if count and self._forgotten[0] != count:
            with contextlib.suppress(StoreError):
                self._forgotten = count, self._pager.forgotten()

    def _forgettings(self) -> int:
        try:
            return self._pager.forgettings()
        except StoreError:  # a store that cannot be asked stores nothing either
            return self._mark

    def is_private(self, text: str) -> bool:
        """Whether a text holds what must not be stored."""
        self._look_again()
        return bool(self.finds(text))

    def redact_note(self, data: str) -> str:
        """What is kept of a fact, given as JSON text."""
        self._look_again()
        return without_in_json(data, self.finds) if self.finds(data) else data

    def redact_message(self, state: State, message: Message) -> Message:
        """A message that is about to be said behind this state, as it is journaled."""
        self._look_again()
        asked = {block.call_id for block in message.blocks if isinstance(block, ToolResult)}
        private = _private(state.draft.tip, asked) if asked else frozenset()
        self.withholding.shown |= state.withheld
        return self.withholding.of(message, private)

    def shows(self, message: Message) -> Message:
        """A message of the window as its client said it, as far as this process knows it."""
        return self.withholding.shows(message)

    def note_excluded_read(self, state: State, text: str) -> NoteEntry | None:
        """An excluded file was read, and showed this text. What is to be noted of it, None where that was."""
        digest = self.withholding.add(text)
        return None if digest in state.withheld else NoteEntry(WITHHELD_READ, f'"{digest}"')

    def _key(self) -> bytes:
        """The store's secret; where it cannot be asked, one of this process, with which no text is known again elsewhere."""
        try:
            return self._pager.secret()
        except StoreError:
            self._own = self._own or secrets.token_bytes(_KEY_BYTES)
            return self._own


def _private(tip: Cell | None, asked: set[str]) -> frozenset[str]:
    """Which of these calls may show an excluded file. Costs a step where their message is the last one, as it is unless they come late."""
    found: set[str] = set()
    waiting = set(asked)
    while tip is not None and waiting:
        for block in tip.piece.message.blocks:
            if isinstance(block, ToolCall) and block.id in waiting:
                waiting.discard(block.id)
                if block.withheld is not None and not block.withheld.part:
                    found.add(block.id)
        tip = tip.before
    return frozenset(found)
