"""One model call between an SDK and its provider, without I/O: the request to send, and the way of its answer.

Rules of this file
------------------
1. An answer is a generator of steps. A driver makes each step, with or without `await`, and sends its result back.
2. The program gets a stream as it arrives. It is continued only after its end, and only if the model called a recall tool.
3. A failure of pagein never fails a call: the request then goes out as it was last sent, or as the program gave it (law 7).
4. The engine knows what stands behind the program's message before the program can send that message.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from pagein.adapters.bounded_curator import BoundedCurator
from pagein.gateway.curation.guarded_curator import CurationRequest
from pagein.gateway.stream.answer_tee import Tee
from pagein.gateway.stream.continuation import continue_request
from pagein.gateway.stream.rounds import Rounds
from pagein.gateway.stream.whole_answer import whole
from pagein.model.json_text import encode_json
from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.json_values import decoded_object
from pagein.providers.wire.streams.model_reply import NO_REPLY, ModelReply
from pagein.providers.wire.streams.model_turn import ModelTurn, OwnToolResult
from pagein.providers.wire.streams.stream_merge import UNTOLD, StreamMerger, TooLong

_OK: Final = 200
_ENOUGH: Final = "Enough was recalled for one answer. Go on with what you have, or call other tools."


@dataclass(frozen=True, slots=True)
class NextPiece:
    """Ask for the next bytes of the provider's answer; b"" at its end."""


@dataclass(frozen=True, slots=True)
class Show:
    """Give these bytes to the program."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Run:
    """Run a possibly slow function, and return the value."""

    work: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Send:
    """Send the program's request again with this body, and give the `AnswerStart` back. Its pieces come next."""

    body: bytes


@dataclass(frozen=True, slots=True)
class AnswerStart:
    """The beginning of an answer of the provider.

    kind: its content type.
    """

    status: int
    kind: str

    @property
    def is_stream(self) -> bool:
        """Whether the answer is a stream of events."""
        return self.kind.strip().lower().startswith("text/event-stream")


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """An answer that is no stream.

    is_later: whether it is the provider's answer to a continuation, whose status and headers apply.
    """

    body: bytes
    is_later: bool = False


Step: TypeAlias = NextPiece | Show | Run | Send
_NEXT: Final = NextPiece()


class UnfinishedAnswer(Exception):
    """The model recalled again and again, and the program gets no answer."""


class CuratedCall:
    """A model call, as the engine decided it.

    body: the bytes to send.
    rounds: most continuations of its answer.
    """

    def __init__(self, curator: BoundedCurator, asked: CurationRequest, rounds: int) -> None:
        self._curator = curator
        self._api = asked.api
        self._form = format_named(asked.api).answers
        self._most = rounds
        self._curated = curator.prepare(asked)
        self._rounds = Rounds(self._form)
        self._read: list[Callable[[], ModelReply]] = []
        self._recalls = 0
        self._is_finished = False
        self.body = self._curated.body

    @property
    def has_tools(self) -> bool:
        """Whether the model was offered recall tools. Such an answer must be readable here."""
        return bool(self._curated.tools)

    def stream(self) -> Generator[Step, Any, None]:
        """Yield the steps of a streamed answer. Its first turn has status 200."""
        tools = self._curated.tools
        if not tools:
            yield from self._pass()
            return
        merger = self._form.merger(tools)
        while True:
            turn = yield from self._turn(merger)
            if turn is None:
                return
            self._rounds.end_turn(turn)
            results = yield Run(partial(self._results, turn))
            if not turn.goes_on:
                break
            body = b""
            if self._rounds.count <= self._most + 1:
                self._rounds.add_answers(results)
                answered = yield from self._go_on()
                if answered is not None and answered.status == _OK:
                    merger.begin(spoke=turn.spoke)
                    continue
                body = b"" if answered is None else (yield from _rest())
            yield Run(self._record_exchange)
            yield Show(merger.failure(body))
            return
        yield Run(self._record_exchange)
        yield Show(merger.end_frames())

    def _pass(self) -> Generator[Step, Any, None]:
        """Yield the steps of a stream without recall: the provider's own bytes."""
        tee = Tee(self._api, [("content-type", "text/event-stream")])
        self._read.append(tee.reply)
        while piece := (yield _NEXT):
            is_much = tee.feed(piece)
            yield Show(piece)
            if is_much:
                yield Run(tee.read)

    def _go_on(self) -> Generator[Step, Any, AnswerStart | None]:
        """Send the continuation. Return None if the provider cannot be reached."""
        try:
            answered: AnswerStart = yield Send((yield Run(self._continuation)))
        except Exception:  # noqa: BLE001 -- whatever it is, the program is told in the middle of its stream
            return None
        return answered

    def _turn(self, merger: StreamMerger) -> Generator[Step, Any, ModelTurn | None]:
        """Show a turn, and return the content; None after the last turn."""
        tee = Tee(self._api, [("content-type", "text/event-stream")])
        self._read.append(tee.reply)
        try:
            while piece := (yield _NEXT):
                is_much = tee.feed(piece)
                if shown := merger.take(piece):
                    yield Show(shown)
                if is_much:
                    yield Run(tee.read)
            if shown := merger.flush():
                yield Show(shown)
        except Exception as problem:
            yield Run(partial(self._record_partial_turn, tee, merger))
            if isinstance(problem, TooLong):
                yield Show(merger.failure(b""))
                return None
            raise
        if not merger.held:
            return None
        if merger.failed or not merger.ended:
            yield Run(partial(self._record_partial_turn, tee, merger))
            if shown := merger.broken():
                yield Show(shown)
            return None
        reply = yield Run(tee.reply)
        return self._form.turn(reply, self._curated.tools)

    def whole(self, answered: AnswerStart) -> Generator[Step, Any, WholeAnswer]:
        """Yield the steps of an answer without a stream, and return the program's answer. Raises Unfinished."""
        answers: list[Mapping[str, Any]] = []
        hides, tools = False, self._curated.tools
        while True:
            body = yield from _rest()
            value, reply = yield Run(partial(_read_answer, self._api, body))
            if answered.status != _OK or value is None:
                return WholeAnswer(body, is_later=bool(answers))
            answers.append(value)
            self._read.append(lambda reply=reply: reply)  # type: ignore[misc]
            turn = self._form.turn(reply, tools)
            hides = hides or turn.shown != turn.said or bool(turn.own)
            self._rounds.end_turn(turn)
            results = yield Run(partial(self._results, turn))
            if not turn.goes_on:
                break
            if self._rounds.count > self._most + 1:
                raise UnfinishedAnswer(UNTOLD)
            self._rounds.add_answers(results)
            answered = yield Send((yield Run(self._continuation)))
        yield Run(self._record_exchange)
        if hides or len(answers) > 1:
            body = encode_json(self._form.merged(answers, tools))
        return WholeAnswer(body)

    def finish(self) -> None:
        """Tell the engine of the answer as far as it was read. Raises nothing, and counts once."""
        if self._is_finished:
            return
        self._is_finished = True
        try:
            self._curator.observe(self._curated, self._reply())
        except Exception:  # noqa: BLE001 -- law 7: the program has its answer
            return

    def _reply(self) -> ModelReply:
        replies = [read() for read in self._read]
        if not replies:
            return NO_REPLY
        tools = self._curated.tools
        shown = tuple(item for one in replies for item in self._form.turn(one, tools).shown)
        if len(replies) == 1:
            return replace(replies[0], recalls=self._recalls, shown=shown)
        used = [one.usage for one in replies if one.usage is not None]
        usage = sum(used, Usage()) if used else None
        first = replies[0].first or replies[0].usage
        return replace(replies[-1], usage=usage, first=first, recalls=self._recalls, shown=shown)

    def _results(self, turn: ModelTurn) -> list[OwnToolResult]:
        found = []
        for call in turn.own:
            is_enough = self._rounds.count > self._most
            found.append(
                OwnToolResult(call, _ENOUGH, is_error=True) if is_enough else self._curator.recall(self._curated, call)
            )
            self._recalls += 1
        if not turn.goes_on:
            self._rounds.add_client_answers(found)
        return found

    def _continuation(self) -> bytes:
        return continue_request(self.body, self._api, self._rounds.behind)

    def _record_partial_turn(self, tee: Tee, merger: StreamMerger) -> None:
        if merger.later:
            reply = replace(tee.reply(), finished=False, stop="")
            self._rounds.end_turn(self._form.turn(reply, self._curated.tools))
            self._record_exchange()

    def _record_exchange(self) -> None:
        exchange = self._rounds.exchange
        if exchange is not None:
            self._curator.splice_answer(self._curated, exchange)


def _rest() -> Generator[Step, Any, bytes]:
    """Read the provider's answer to its end."""
    parts: list[bytes] = []
    while piece := (yield _NEXT):
        parts.append(piece)
    return b"".join(parts)


def _read_answer(api: Api, body: bytes) -> tuple[dict[str, Any] | None, ModelReply]:
    return decoded_object(body), whole(api, body)
