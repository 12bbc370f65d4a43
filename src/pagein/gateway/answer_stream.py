"""Stream an answer to the client, answer the model's calls of recall tools, and continue the answer.

Rules of this file
------------------
1. A turn is forwarded as it arrives. It is read and continued only after its end, and only if it called a recall tool.
2. The engine knows the full content behind the client's message before the client can send the message.
3. A failure after the first turn is reported as the provider reports errors in mid-stream, or breaks off the answer; it never looks
   like a regular end. The client may send back the part shown until then, so the engine records this part, too.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from aiohttp import ClientResponse, web

from pagein.gateway.curation.child_asker import ChildQuestions
from pagein.gateway.curation.guarded_curator import CuratedRequest, Guard
from pagein.gateway.http import headers as http_headers
from pagein.gateway.http.own_answers import UpstreamResponse
from pagein.gateway.stream.answer_tee import Tee
from pagein.gateway.stream.continuation import continue_request
from pagein.gateway.stream.rounds import Rounds
from pagein.gateway.stream.upstream_answer import UPSTREAM, BrokenAnswer, is_readable, pieces_of, read_start
from pagein.gateway.stream.whole_answer import whole
from pagein.model.json_text import encode_json
from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.json_values import decoded_object
from pagein.providers.wire.streams.model_reply import NO_REPLY, ModelReply
from pagein.providers.wire.streams.model_turn import ModelTurn, OwnToolResult
from pagein.providers.wire.streams.stream_merge import StreamMerger, TooLong
from pagein.providers.wire.wire_format import AnswerForm

T = TypeVar("T")

_QUIET: Final = 5.0
"""Seconds of silence after which the client gets a keep-alive frame."""
_ENOUGH: Final = "Enough was recalled for one answer. Go on with what you have, or call other tools."
_OK: Final = 200


class RecallListener(Protocol):
    """Receives the events of an answer."""

    def report_failure(self, kind: str, why: str) -> None:
        """Report a failure."""

    def report_recall(self, tool: str, *, is_error: bool) -> None:
        """Report an answered call of a recall tool."""


@dataclass(frozen=True, slots=True)
class AnswerTerms:
    """The terms on which an answer is forwarded and continued.

    send: repeats the client's request with another body
    rounds: maximum number of continuations
    children: answers questions to child models; None if none were offered
    """

    api: Api
    guard: Guard
    curated: CuratedRequest
    send: Callable[[bytes], AbstractAsyncContextManager[ClientResponse]]
    listener: RecallListener
    rounds: int
    children: ChildQuestions | None = None

    @property
    def form(self) -> AnswerForm:
        """How answers are written."""
        return format_named(self.api).answers


def can_answer(upstream: ClientResponse) -> bool:
    """Return whether an answer may contain tool calls and is readable here."""
    kind = upstream.headers.get("Content-Type", "").strip().lower()
    is_read = kind.startswith(("text/event-stream", "application/json"))
    return upstream.status == _OK and is_read and is_readable(upstream)


class Answerer:
    """Forwards an answer with its continuations.

    lost: why the answer was not read completely, "" if it was
    """

    def __init__(self, terms: AnswerTerms) -> None:
        self._terms = terms
        self._rounds = Rounds(terms.form)
        self._read: list[Callable[[], ModelReply]] = []
        self._recalls = 0
        self.lost = ""

    def reply(self) -> ModelReply:
        """Return the model's reply, merged over every turn."""
        replies = [read() for read in self._read]
        if not replies:
            return NO_REPLY
        form, tools = self._terms.form, self._terms.curated.tools
        shown = tuple(item for one in replies for item in form.turn(one, tools).shown)
        if len(replies) < 2:  # noqa: PLR2004 -- a single turn needs no merging
            return replace(replies[0], recalls=self._recalls, shown=shown)
        used = [one.usage for one in replies if one.usage is not None]
        first = replies[0].first or replies[0].usage
        usage = sum(used, Usage()) if used else None
        further = tuple(one.usage for one in replies[1:] if one.usage is not None)
        return replace(
            replies[-1],
            usage=usage,
            first=first,
            further=further,
            miss=replies[0].miss,
            id=replies[0].id,
            recalls=self._recalls,
            shown=shown,
        )

    @property
    def behind(self) -> tuple[bytes, ...]:
        """Return the messages after the client's request, including results of recall tools."""
        return self._rounds.behind

    async def send_back(
        self, request: web.Request, upstream: ClientResponse, headers: http_headers.Headers
    ) -> web.StreamResponse:
        """Forward the answer to the client. Raises BrokenAnswer, and ConnectionError for a failure of the client."""
        out = UpstreamResponse(
            upstream.status, upstream.reason, http_headers.without(headers, "content-length", "content-encoding")
        )
        async with AsyncExitStack() as stack:
            if upstream.headers.get("Content-Type", "").strip().lower().startswith("text/event-stream"):
                await out.prepare(request)
                await self._forward_stream(stack, out, upstream)
                await out.write_eof()
                return out
            return await self._forward_whole(stack, request, upstream, out)

    # --- a stream ---

    async def _forward_stream(self, stack: AsyncExitStack, out: web.StreamResponse, upstream: ClientResponse) -> None:
        terms = self._terms
        merger = terms.form.merger(terms.curated.tools)
        while True:
            turn = await self._forward_turn(out, upstream, merger)
            if turn is None:
                return
            self._rounds.end_turn(turn)
            results = await _await_lively(out, merger, self._answer_calls(turn))
            if not turn.goes_on:
                break
            if self._rounds.count > terms.rounds + 1:
                await self._end_with_error(out, merger, b"")
                return
            self._rounds.add_answers(results)
            try:
                upstream = await _await_lively(out, merger, self._send_continuation(stack))
            except UPSTREAM as problem:
                terms.listener.report_failure("recall", type(problem).__name__)
                await self._end_with_error(out, merger, b"")
                return
            if upstream.status != _OK:
                told: list[bytes] = []
                await read_start(pieces_of(upstream), told)
                await self._end_with_error(out, merger, b"".join(told))
                return
            merger.begin(spoke=turn.spoke)
        await self._record_exchange()
        await out.write(merger.end_frames())

    async def _forward_turn(
        self, out: web.StreamResponse, upstream: ClientResponse, merger: StreamMerger
    ) -> ModelTurn | None:
        """Forward a turn and return its content at the end; None if the whole answer ended with this turn."""
        tee = Tee(self._terms.api, _plain_type(upstream))
        self._read.append(tee.reply)
        try:
            async for text in pieces_of(upstream):
                is_much = tee.feed(text)
                if shown := merger.take(text):
                    await out.write(shown)
                if is_much:
                    await asyncio.to_thread(tee.read)
            if shown := merger.flush():
                await out.write(shown)
        except (BrokenAnswer, TooLong) as problem:
            await self._record_partial_turn(tee, merger)
            await _break_off(out, merger)
            raise BrokenAnswer from problem
        if not merger.held:
            return None
        if merger.failed or not merger.ended:
            await self._record_partial_turn(tee, merger)
            if merger.failed:
                return None
            await _break_off(out, merger)
            raise BrokenAnswer
        reply = await asyncio.to_thread(tee.reply)
        self.lost = self.lost or tee.lost
        return self._terms.form.turn(reply, self._terms.curated.tools)

    async def _record_partial_turn(self, tee: Tee, merger: StreamMerger) -> None:
        if merger.later:
            reply = replace(await asyncio.to_thread(tee.reply), finished=False, stop="")
            self._rounds.end_turn(self._terms.form.turn(reply, self._terms.curated.tools))
            await self._record_exchange()

    async def _end_with_error(self, out: web.StreamResponse, merger: StreamMerger, body: bytes) -> None:
        await self._record_exchange()
        self._terms.listener.report_failure("recall", "the model could not continue after a recall")
        await out.write(merger.failure(body))

    # --- an answer that is no stream ---

    async def _forward_whole(
        self, stack: AsyncExitStack, request: web.Request, upstream: ClientResponse, out: UpstreamResponse
    ) -> web.StreamResponse:
        terms = self._terms
        answers: list[Mapping[str, Any]] = []
        hides = False
        while True:
            pieces, found = pieces_of(upstream), list[bytes]()
            try:
                is_all = await read_start(pieces, found)
            except BrokenAnswer:
                if not answers:  # unmodified so far: forward the partial answer
                    await _send_partial(request, out, found)
                raise
            body = b"".join(found)
            if not is_all:
                self.lost = "size"
                return await _forward_rest(request, upstream, out if not answers else None, body, pieces)
            value, reply = await asyncio.to_thread(_read_answer, terms.api, body)
            if upstream.status != _OK or value is None:
                return await _send_whole(request, upstream, out if not answers else None, body)
            answers.append(value)
            self._read.append(lambda reply=reply: reply)  # type: ignore[misc]
            turn = terms.form.turn(reply, terms.curated.tools)
            hides = hides or turn.shown != turn.said or bool(turn.own)
            self._rounds.end_turn(turn)
            results = await self._answer_calls(turn)
            if not turn.goes_on:
                break
            if self._rounds.count > terms.rounds + 1:
                raise BrokenAnswer
            self._rounds.add_answers(results)
            try:
                upstream = await self._send_continuation(stack)
            except UPSTREAM as problem:
                raise BrokenAnswer from problem
        await self._record_exchange()
        if hides or len(answers) > 1:
            body = await asyncio.to_thread(_merge_answers, terms, answers)
        return await _send_whole(request, upstream, out, body)

    # --- between the turns ---

    async def _answer_calls(self, turn: ModelTurn) -> list[OwnToolResult]:
        terms, found = self._terms, []
        for call in turn.own:
            if self._rounds.count > terms.rounds:
                result = OwnToolResult(call, _ENOUGH, is_error=True)
            elif terms.children is not None and call.name in terms.children.names:
                result = await terms.children.answer(call)
            else:
                result = await terms.guard.recall(terms.curated, call)
            self._recalls += 1
            terms.listener.report_recall(call.name, is_error=result.is_error)
            found.append(result)
        if not turn.goes_on:
            self._rounds.add_client_answers(found)
        return found

    async def _record_exchange(self) -> None:
        exchange = self._rounds.exchange
        if exchange is None:
            return
        failure = await self._terms.guard.splice_answer(self._terms.curated, exchange)
        if failure:
            self._terms.listener.report_failure("splice", failure)

    async def _send_continuation(self, stack: AsyncExitStack) -> ClientResponse:
        terms, behind = self._terms, self._rounds.behind
        body = await asyncio.to_thread(continue_request, terms.curated.body, terms.api, behind)
        return await stack.enter_async_context(terms.send(body))


async def _break_off(out: web.StreamResponse, merger: StreamMerger) -> None:
    if shown := merger.broken():
        await out.write(shown)


async def _await_lively(out: web.StreamResponse, merger: StreamMerger, doing: Awaitable[T]) -> T:
    """Wait for a result, and send keep-alive frames to the client meanwhile."""
    task = asyncio.ensure_future(doing)
    try:
        while not (await asyncio.wait([task], timeout=_QUIET))[0]:
            await out.write(merger.alive)
    finally:
        if not task.done():
            task.cancel()
    return task.result()


async def _send_whole(
    request: web.Request, upstream: ClientResponse, out: UpstreamResponse | None, body: bytes
) -> web.StreamResponse:
    """Send a complete body as the answer.

    out: None for an answer from a later upstream response: status and headers come from that response
    """
    out = out if out is not None else _begin_answer(upstream)
    out.content_length = len(body)
    await out.prepare(request)
    await out.write(body)
    await out.write_eof()
    return out


async def _forward_rest(
    request: web.Request,
    upstream: ClientResponse,
    out: UpstreamResponse | None,
    front: bytes,
    rest: AsyncIterator[bytes],
) -> web.StreamResponse:
    """Forward an answer that is too long to be read."""
    out = out if out is not None else _begin_answer(upstream)
    await out.prepare(request)
    await out.write(front)
    async for piece in rest:
        await out.write(piece)
    await out.write_eof()
    return out


async def _send_partial(request: web.Request, out: UpstreamResponse, found: Sequence[bytes]) -> None:
    """Send the part received of an incomplete answer."""
    await out.prepare(request)
    await out.write(b"".join(found))


def _begin_answer(upstream: ClientResponse) -> UpstreamResponse:
    headers = http_headers.forward_headers(http_headers.as_sent(upstream.raw_headers), length=False)
    return UpstreamResponse(upstream.status, upstream.reason, http_headers.without(headers, "content-encoding"))


def _read_answer(api: Api, body: bytes) -> tuple[dict[str, Any] | None, ModelReply]:
    return decoded_object(body), whole(api, body)


def _merge_answers(terms: AnswerTerms, answers: Sequence[Mapping[str, Any]]) -> bytes:
    return encode_json(terms.form.merged(answers, terms.curated.tools))


def _plain_type(upstream: ClientResponse) -> list[tuple[str, str]]:
    return [("content-type", upstream.headers.get("Content-Type", ""))]
