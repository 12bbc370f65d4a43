"""Compute the edits between pi's own messages and the messages of a request, and judge whether it fits without a compaction.

Rules of this file
------------------
1. pi begins each request with its own messages. What was changed once must be changed again, so the extension keeps the
   changes, and is told only of what is new.
2. Only results are changed, never calls, so pairs stay pairs. Texts of pagein's own are messages behind one of pi's.
3. A text that pagein may not keep stays as pi has it.
4. While the store fails, a stub could not be recalled: the request is as pi has it, but for reads whose marker would not be
   proven. Once the store is back, the changes are.
5. While pi does not know how full the window is, nothing new leaves it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pagein.engine.log.pin_state import is_ours
from pagein.engine.prepared_request import CLOSED_GATE, OPEN_GATE, Gate
from pagein.engine.session import Session
from pagein.errors import StoreError
from pagein.model.messages import Message, Text, ToolResult
from pagein.pi_host.branch import MARKER, PiBranch, name_of
from pagein.pi_host.protocol import CompactionVerdict, Insert, WindowEdits, WindowUsage
from pagein.policy.stubs.recall_ways import Way

_PAGES: Final[Gate] = replace(OPEN_GATE, way=Way("rlm_peek", "rlm_search"), arguments=False)
"""What may be decided while paging is on. Arguments of calls stay, since pi's messages keep them."""


class PiWindow:
    """The window of a session, as built by the extension.

    limit: share of the model's window up to which a request fits.
    shown: the changes of the last request, by the id of the call; None before the first of this process.
    """

    def __init__(self, session: Session, branch: PiBranch, limit: float) -> None:
        self._session = session
        self._branch = branch
        self._limit = limit
        self._length = 0
        self._began = False
        self._last = ""
        self._crowded = False
        self.shown: dict[str, str] | None = None

    def edits(self, at: float, *, pages: bool, usage: WindowUsage | None = None, clears: bool = False) -> WindowEdits:
        """Return the edits for the next request, and journal the request as sent.

        at: seconds since 1970. pages: whether results may leave the window. clears: whether the provider may take
        earlier results out.
        """
        gate = _PAGES if pages and usage is not None else CLOSED_GATE
        request = self._session.advance(at, replace(gate, rereads=not clears))
        self._branch.stay()
        self._crowded = request.crowded
        goes_on = self._began and request.keep == self._length
        messages = request.tail if goes_on else self._session.last_request()
        self._began, self._length = True, request.length
        changed = {name: text for message in messages for name, text in self._changed(message)}
        if not self._session.is_kept:
            self._began = False
            told = self._branch.results
            self.shown = unproven = {name: text for name, text in changed.items() if told[name].startswith(MARKER)}
            return WindowEdits(reset=True, results=unproven, failure=request.failure or "the store cannot be written")
        inserts = tuple(self._inserts(messages, self._last if goes_on else ""))
        self.shown = {**(self.shown or {}), **changed} if goes_on else changed
        return WindowEdits(not goes_on, changed, inserts, request.failure or "")

    def judge_compaction(self, *, pages: bool, usage: WindowUsage | None) -> CompactionVerdict:
        """Return the verdict on pi's compaction: cancelled if the request fits, and the store has every result.

        Old results then leave with the next request. pages: whether results may leave the window.
        """
        if not pages or usage is None or self._crowded or self._branch.is_refused or not self._is_stored():
            return CompactionVerdict()
        if usage.tokens > self._limit * usage.window or self._session.hand.epoch() is not None:
            return CompactionVerdict()
        self._branch.stay()
        return CompactionVerdict(
            cancel=True,
            reason=f"pagein: no compaction, since the session fits ({usage.tokens:,} of {usage.window:,} tokens). Old results "
            "leave with the next request. /rlm off leaves it to pi.",
        )

    def _is_stored(self) -> bool:
        """Return whether the store has every result, so that evicted results can be recalled."""
        try:
            self._session.keep()
        except StoreError:
            return False
        return True

    def forget_changes(self) -> None:
        """Assume that the extension knows no changes. The next request sends every change."""
        self._began = False

    def forget_crowding(self) -> None:
        """Forget that the window was full. The next decision tells anew."""
        self._crowded = False

    def _changed(self, message: Message) -> list[tuple[str, str]]:
        """Return the results in a message whose text differs from pi's own text."""
        told = self._branch.results
        results = (block for block in message.blocks if isinstance(block, ToolResult) and block.withheld is None)
        return [(one.call_id, one.text) for one in results if told.get(one.call_id, one.text) != one.text]

    def _inserts(self, messages: Sequence[Message], last: str) -> Iterator[Insert]:
        """Yield pagein's own texts, each with the name of pi's message before."""
        for message in messages:
            last = name_of(message, self._branch.results) or last
            for block in message.blocks:
                if isinstance(block, Text) and is_ours(block.injected) and last:
                    yield Insert(last, block.text)
        self._last = last
