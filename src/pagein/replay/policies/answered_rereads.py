"""Convert the engine's answers to repeated reads into entries of the replay ledger.

Rules of this file
------------------
1. A marker or a diff shows only its own lines. The lines it refers to are elsewhere in the window, and the ledger finds
   them there.
2. An answer is weighed by its characters. A recording with fewer tokens than its characters suggest gains nothing by
   this.
"""

from itertools import accumulate

from pagein.model.entries import PagedOut
from pagein.model.messages import ToolCall, ToolResult
from pagein.model.read_events import FileRead
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.window_files import FileChains, FileStatement
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.model_calls import Block, without_gutter
from pagein.replay.prompt.prompt_changes import ReadAgain, Removable


class RecordedRereads:
    """The reads of a recording, and the answers given to repeated reads."""

    def __init__(self, recording: BillableSession) -> None:
        self._client: Profile = recording.client
        self._ratio = recording.chars_per_token
        blocks = recording.calls.blocks
        self._results = {block.call_id: block for block in blocks if block.kind == "result"}
        self._calls = {block.call_id: block for block in blocks if block.kind == "arguments"}

    def stand_in_for(self, paged: PagedOut, resident: Removable, reads: FileChains) -> ReadAgain | None:
        """Return the answer shown in place of a repeated read, or None for a preview.

        paged: the result as it entered the window.
        reads: what the client's reads show after this result.
        """
        held = reads.statement_of(paged.call_id)
        if held is None:
            return None
        tokens = len(paged.stub) / self._ratio
        if held.stands_for_more:
            return ReadAgain(resident, min(resident.tokens, tokens), self._runs(held))
        repeat = reads.repeats.get(paged.call_id)
        base = None if repeat is None else self._results.get(repeat.base)
        return ReadAgain(resident, tokens, again=None if base is None else base.ordinal)

    def _runs(self, held: FileStatement) -> tuple[tuple[int, int], ...]:
        """Return the character ranges of a read, without line numbers, shown by its answer as own lines."""
        call, result = _block_value(self._calls[held.call]), _block_value(self._results[held.call])
        if not isinstance(call, ToolCall) or not isinstance(result, ToolResult) or not isinstance(held.event, FileRead):
            return ()
        shown, emitted = self._client.lines_shown(call, result), held.event.emitted
        rows = result.text.count("\n") + 1
        lines = without_gutter(result.text).split("\n")
        if shown is None or emitted is None or len(lines) != rows:
            return ()
        starts = [0, *accumulate(len(line) + 1 for line in lines)]
        ahead = result.text.count("\n", 0, shown.before) - shown.first
        own = emitted.clamp(shown.first, shown.last)
        return tuple((starts[first + ahead], starts[last + ahead + 1] - 1) for first, last in own)


def _block_value(block: Block) -> object:
    return block.message.get().blocks[block.place]
