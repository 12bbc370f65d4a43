"""The same job without and with pagein between agent and provider: compare the costs, and look for losses.

Rules of this file
------------------
1. What stands in the provider's records is all that counts: nothing here asks the engine what it did.
2. Results are compared in the order of their calls. What was replaced is recalled and compared byte for byte with what the agent
   sent without us, but for what changes from run to run by itself (`_VOLATILE`).
3. A result with a marker of ours in it stands for lines that are visible: each line that the agent sent without us must stand
   somewhere before it in each request that has the marker.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from tests.agents.runs import Outcome

from pagein.model.json_text import encode_json
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.providers.wire import decode
from pagein.simulator import Record

_HANDLE: Final = re.compile(r"^\[pagein: (\S+) \| [^\n]*\]$", re.MULTILINE)
_PREVIEW: Final = "characters in the middle are kept and not shown."
_MARKER: Final = "[readcache: "
_GUTTER: Final = re.compile(r"^\s*\d+(?:\t|: |→)")
# an agent's own stamps on what a command printed, and what it adds there now and then
_VOLATILE: Final = re.compile(
    r"Chunk ID: \w+|Wall time:? [\d.]+ seconds|\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL
)
_OWN_TOOL: Final = "peek"
_RECALLING: Final = "pagein peek"
# codex's stamps are lines of a result too, so the same numbers are not quite the same lines
_MOST: Final = 0.5


@dataclass(frozen=True, slots=True)
class JobFigures:
    """One agent's job without pagein and through it. Bills in BIT.

    previews, stubs: results that stood so in any request. epochs: requests that did not go on from the one before, and without
    pagein did. rereads: results answered by a marker of ours. recalls: what was looked at again, and showed what the agent without us
    had to run a command for. lost: results that were replaced and whose recall is not what the agent sent. unproven: markers in a
    request that does not show what they stand for.
    """

    requests: int
    refused: int
    failed: int
    direct: float
    through: float
    previews: int
    stubs: int
    epochs: int
    rereads: int
    recalls: int
    lost: int
    unproven: int
    seconds_direct: float
    seconds_through: float

    @property
    def ratio(self) -> float:
        """The bill through pagein, as a part of the one without it."""
        return self.through / self.direct if self.direct else 1.0

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "ratio": self.ratio}


def compare_outcomes(direct: Outcome, through: Outcome, recall: Callable[[str], str]) -> JobFigures:
    """The figures of a job that was done twice. recall: the whole text behind an id; raises where there is none."""
    histories = [_messages(record) for record in through.calls]
    texts = {result.text for messages in histories for _, result in _results(messages)}
    found = {text: handle[1] for text in texts if (handle := _HANDLE.search(text))}
    previews = {handle for text, handle in found.items() if _PREVIEW in text}
    stubs = {handle for text, handle in found.items() if _PREVIEW not in text}
    plain = [_messages(record) for record in direct.calls]
    return JobFigures(
        requests=through.bill.requests,
        refused=through.bill.refused + direct.bill.refused,
        failed=through.bill.failed + direct.bill.failed,
        direct=direct.bill.bit,
        through=through.bill.bit,
        previews=len(previews),
        stubs=len(stubs),
        epochs=breaks(histories) - breaks(plain),
        rereads=len({text for text in texts if _MARKER in text}),
        recalls=_recalls(plain[-1], histories) if plain else 0,
        lost=_lost(plain[-1], histories[-1], recall) if plain and histories else 0,
        unproven=sum(_unproven(plain[-1], messages) for messages in histories) if plain else 0,
        seconds_direct=direct.seconds,
        seconds_through=through.seconds,
    )


def breaks(histories: Iterable[Sequence[Message]]) -> int:
    """How many requests did not go on from the one before them."""
    before: Sequence[Message] = ()
    count = 0
    for messages in histories:
        count += list(messages[: len(before)]) != list(before)
        before = messages
    return count


def _messages(record: Record) -> tuple[Message, ...]:
    if record.api is None:
        return ()
    return decode(encode_json(record.body), record.api).messages


def _calls(messages: Iterable[Message]) -> Iterator[ToolCall]:
    return (block for message in messages for block in message.blocks if isinstance(block, ToolCall))


def _is_recall(call: ToolCall) -> bool:
    return call.name == _OWN_TOOL or _RECALLING in call.arguments


def _results(messages: Sequence[Message]) -> Iterator[tuple[ToolCall, ToolResult]]:
    """By the order of the calls: what is run at once is told in the order in which it ended, which is another one from run to run."""
    told = {block.call_id: block for one in messages for block in one.blocks if isinstance(block, ToolResult)}
    for call in _calls(messages):
        if call.id in told:
            yield call, told[call.id]


def _lost(plain: Sequence[Message], curated: Sequence[Message], recall: Callable[[str], str]) -> int:
    """How many results cannot be had again as the agent sends them."""
    pairs = zip(_results(plain), _results(curated), strict=True)
    both = [(sent.text, got.text) for (_, sent), (call, got) in pairs if not _is_recall(call)]
    return sum(_whole(got, recall) not in (_steady(sent), None) for sent, got in both)


def _unproven(plain: Sequence[Message], curated: Sequence[Message]) -> int:
    """How many markers stand for lines that this request does not show before them."""
    wanted = [result.text for _, result in _results(plain)]
    visible: list[str] = []
    count = 0
    for place, (call, result) in enumerate(_results(curated)):
        visible += [call.arguments, result.text]
        if _MARKER in result.text:
            seen = "\n".join(visible)
            count += any(line.strip() not in seen for line in _bare(wanted[place]))
    return count


def _bare(text: str) -> list[str]:
    """The lines of a result without the numbers in front of them."""
    return [_GUTTER.sub("", line) for line in _steady(text).splitlines()]


def _recalls(plain: Sequence[Message], histories: Sequence[Sequence[Message]]) -> int:
    """How many recalls showed most of the lines that the agent without us saw at that place."""
    wanted = [result.text for _, result in _results(plain)]
    shown: dict[int, str] = {}
    for messages in histories:
        for place, (call, result) in enumerate(_results(messages)):
            if _is_recall(call):
                shown.setdefault(place, result.text)  # before it goes itself
    return sum(_shares(wanted[place], text) for place, text in shown.items())


def _shares(wanted: str, shown: str) -> bool:
    lines = {line for line in _steady(wanted).splitlines() if line.strip()}
    return len(lines & set(shown.splitlines())) >= _MOST * len(lines)


def _whole(text: str, recall: Callable[[str], str]) -> str | None:
    """What a result says, or said before it was replaced; None for a marker, which the witness answers for."""
    if _MARKER in text:
        return None
    handle = _HANDLE.search(text)
    return _steady(recall(handle[1]) if handle else text)


def _steady(text: str) -> str:
    return _VOLATILE.sub("", text)
