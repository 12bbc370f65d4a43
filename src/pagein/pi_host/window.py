"""Compute the edits between pi's own messages and the messages of a request.

Rules of this file
------------------
1. pi begins each request with its own messages. What was changed once must be changed again, so the extension keeps the
   changes, and is told only of what is new.
2. Only results are changed, never calls, so pairs stay pairs.
3. A text that pagein may not keep stays as pi has it.
"""

from dataclasses import replace
from typing import Final

from pagein.engine.prepared_request import CLOSED_GATE, OPEN_GATE, Gate
from pagein.engine.session import Session
from pagein.model.messages import Message, ToolResult
from pagein.pi_host.branch import PiBranch
from pagein.pi_host.protocol import WindowEdits
from pagein.policy.stubs.recall_ways import Way

_PAGES: Final[Gate] = replace(OPEN_GATE, way=Way("rlm_peek", "rlm_search"), arguments=False)
"""What may be decided while paging is on. Arguments of calls stay, since pi's messages keep them."""


class Window:
    """The window of a session, as built by the extension.

    shown: the changes of the last request, by the id of the call.
    """

    def __init__(self, session: Session, branch: PiBranch) -> None:
        self._session = session
        self._branch = branch
        self._length = 0
        self._began = False
        self.shown: dict[str, str] = {}

    def edits(self, at: float, *, pages: bool) -> WindowEdits:
        """Return the edits for the next request, and journal the request as sent.

        at: seconds since 1970. pages: whether results may leave the window.
        """
        request = self._session.advance(at, _PAGES if pages else CLOSED_GATE)
        self._branch.stay()
        goes_on = self._began and request.keep == self._length
        messages = request.tail if goes_on else self._session.last_request()
        self._began, self._length = True, request.length
        changed = {name: text for message in messages for name, text in self._changed(message)}
        self.shown = {**self.shown, **changed} if goes_on else changed
        return WindowEdits(not goes_on, changed, request.failure or "")

    def _changed(self, message: Message) -> list[tuple[str, str]]:
        """Return the results of a message whose text is not as pi has it."""
        told = self._branch.results
        results = (block for block in message.blocks if isinstance(block, ToolResult) and block.withheld is None)
        return [(one.call_id, one.text) for one in results if told.get(one.call_id, one.text) != one.text]
