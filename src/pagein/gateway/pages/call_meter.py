"""Measure passthrough calls: their session, the composition of its window, their cost, and reasons of cache misses.

Nothing is decided or stored. Bodies are read after the call, in a worker thread. The last request of each session stays in memory,
so that the cost of reading the next request depends only on its new content.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from pagein.engine.cache.cache_forecast import Forecasts
from pagein.engine.cache.cache_inputs import head_of
from pagein.engine.cache.prompt_layout import IN_FRONT, SentRequest
from pagein.engine.intake.body_reader import Opener
from pagein.engine.intake.message_chain import RequestReader, Transcript, first_name
from pagein.gateway.curation.guarded_curator import NOTHING_NOTED, CurationRequest, UsageAccount
from pagein.gateway.pages.session_views import Inside, ObjectView, composition
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.policy.stubs.result_stubs import description
from pagein.providers.prices.price_lookup import cost, newest_prices
from pagein.providers.tokens.counters import ratio_counter
from pagein.providers.wire.session_names import session_in
from pagein.providers.wire.streams.model_reply import ModelReply

SESSIONS: Final = 64
MOST_KEPT: Final = 64 << 20
"""Limits on sessions in memory, and on the total bytes of their last requests; the latest session always stays."""
_COMPARED: Final = 8 << 20  # bytes of earlier requests kept for comparison with a session's next request


@dataclass(frozen=True, slots=True)
class CallMeasure:
    """Measurements of a call.

    session, source: name of its session, and where the name was found
    noted: its usage, with costs at API prices
    """

    session: str
    source: str
    model: str
    noted: UsageAccount = NOTHING_NOTED


@dataclass(slots=True)
class _KnownSession:
    """A session at its last request.

    size: bytes of this request
    """

    listening: RequestReader = field(default_factory=RequestReader)
    script: Transcript | None = None
    model: str = ""
    size: int = 0
    forecasts: Forecasts = field(default_factory=lambda: Forecasts(_COMPARED))


class Meter:
    """Measures calls, one at a time. Callable from any number of threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._opener = Opener(_COMPARED)
        self._sessions: OrderedDict[str, _KnownSession] = OrderedDict()

    def measure(self, asked: CurationRequest, reply: ModelReply) -> CallMeasure:
        """Return the measurements of an answered call.

        Raises BadInput for a body that providers would refuse to parse.
        """
        with self._lock:
            return self._measure(asked, reply)

    def inside(self, session: str) -> Inside | None:
        """Return the composition of a session's last window, or None if not or no longer known."""
        with self._lock:
            known = self._sessions.get(session)
            script, model = (None, "") if known is None else (known.script, known.model)
        if script is None:
            return None
        said = [unit.message for unit in script.units]
        return Inside(name=session, window=composition(said, {}), epochs=[], objects=_results(said, model))

    def _measure(self, asked: CurationRequest, reply: ModelReply) -> CallMeasure:
        hint = asked.hint
        envelope = self._opener.parse(asked.body, asked.api, None if hint is None else hint.key, asked.model)
        named = session_in(envelope.fields) if hint is None else (hint.key, hint.source)
        name, source = (first_name(envelope), "history") if named is None else named
        known = self._sessions.pop(name, None) or _KnownSession()
        script = known.listening.read(envelope)
        head = head_of(envelope, script, asked.context)
        known.script, known.model, known.size = script, head.model, len(asked.body)
        self._sessions[name] = known
        self._forget()
        front = {one: envelope.fields[one] for one in IN_FRONT if one in envelope.fields}
        sent = SentRequest(asked.api, front, envelope.items, script.names, head, asked.at)
        return CallMeasure(name, source, head.model, _account_of(known.forecasts, sent, reply))

    def _forget(self) -> None:
        size = sum(one.size for one in self._sessions.values())
        while len(self._sessions) > SESSIONS or (size > MOST_KEPT and len(self._sessions) > 1):
            size -= self._sessions.popitem(last=False)[1].size


def _account_of(forecasts: Forecasts, sent: SentRequest, reply: ModelReply) -> UsageAccount:
    usage = reply.usage
    if usage is None:
        return NOTHING_NOTED
    diagnosis, paid = forecasts.take_usage(sent, usage).diagnosis, newest_prices(sent.head.model)
    spent = cost(usage, paid, sent.at) if paid is not None else None
    if not diagnosis.is_miss:
        return UsageAccount(spent)
    return UsageAccount(
        spent, shortfall=diagnosis.shortfall, explanation=diagnosis.words, cause=diagnosis.cause, who=diagnosis.who
    )


def _results(said: Sequence[Message], model: str) -> list[ObjectView]:
    """Return the tool results in a window, oldest first."""
    counter, calls = ratio_counter(model), dict[str, ToolCall]()
    found: list[ObjectView] = []
    for message in said:
        for block in message.blocks:
            if isinstance(block, ToolCall):
                calls[block.id] = block
            elif isinstance(block, ToolResult):
                call = calls.get(block.call_id)
                found.append(
                    ObjectView(
                        id="",
                        call=block.call_id,
                        tool=block.name or (call.name if call is not None else ""),
                        form="whole",
                        tokens=round(counter.count(block.text)),
                        marks=[],
                        description=description(block.text),
                    )
                )
    return found
