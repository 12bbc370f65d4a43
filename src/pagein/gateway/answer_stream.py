"""An answer in which our own tools may be called, on its way to the client: gone on with as often as the model recalls.

Rules of this file
------------------
1. A turn passes as it comes. Only when it is over and called something of ours is it read, and gone on with.
2. The engine knows what the client's message stands for before the client can send it.
3. What fails behind the first turn is told as the provider tells of errors in mid-stream, or breaks off; it never looks like an
   end. What the client saw until then may come back all the same, so that is told to the engine, too.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from aiohttp import ClientResponse, web

from pagein.gateway.curation.guarded_curator import CuratedRequest, Guard
from pagein.gateway.http import headers as names
from pagein.gateway.http.own_answers import UpstreamResponse
from pagein.gateway.stream.answer_merge import merge_answers
from pagein.gateway.stream.answer_tee import Tee
from pagein.gateway.stream.chat_stream_merge import ChatWeaver
from pagein.gateway.stream.continuation import continue_request
from pagein.gateway.stream.messages_stream_merge import MessagesWeaver
from pagein.gateway.stream.model_turns import ModelTurn, OwnToolResult, Rounds, turn_of
from pagein.gateway.stream.reply_reader import NO_REPLY, ModelReply, whole
from pagein.gateway.stream.responses_stream_merge import ResponsesWeaver
from pagein.gateway.stream.stream_merge import TooLong, Weaver, object_in
from pagein.gateway.stream.upstream_answer import UPSTREAM, BrokenAnswer, is_readable, pieces_of, read_start
from pagein.model.messages import Usage
from pagein.providers.validity.rules import Api

T = TypeVar("T")

_QUIET: Final = 5.0
"""Seconds without anything for the client, after which a frame says that we are at it."""
_ENOUGH: Final = "Enough was recalled for one answer. Go on with what you have, or call other tools."
_OK: Final = 200
_WEAVERS: Final[Mapping[Api, Callable[[Collection[str]], Weaver]]] = {
    "anthropic": MessagesWeaver,
    "openai_chat": ChatWeaver,
    "openai_responses": ResponsesWeaver,
}


class RecallListener(Protocol):
    """Who is told of what happens."""

    def report_failure(self, kind: str, why: str) -> None:
        """Something failed."""

    def report_recall(self, tool: str, *, is_error: bool) -> None:
        """The model was answered a call of a tool of ours."""


@dataclass(frozen=True, slots=True)
class Conduct:
    """What goes with one answer. send: makes the client's request again, with another body. rounds: how often it may be gone on with."""

    api: Api
    guard: Guard
    curated: CuratedRequest
    send: Callable[[bytes], AbstractAsyncContextManager[ClientResponse]]
    told: RecallListener
    rounds: int


def can_answer(upstream: ClientResponse) -> bool:
    """Whether an answer is one in which tools may be called, and can be read here."""
    kind = upstream.headers.get("Content-Type", "").strip().lower()
    is_read = kind.startswith(("text/event-stream", "application/json"))
    return upstream.status == _OK and is_read and is_readable(upstream)


class Answerer:
    """One answer. lost: why it was not read to its end, "" where it was."""

    def __init__(self, conduct: Conduct) -> None:
        self._conduct = conduct
        self._rounds = Rounds(conduct.api)
        self._read: list[Callable[[], ModelReply]] = []
        self._recalls = 0
        self.lost = ""

    def reply(self) -> ModelReply:
        """What was said, over all turns."""
        replies = [read() for read in self._read]
        if len(replies) < 2:  # noqa: PLR2004 -- one turn tells for itself
            return replace(replies[0], recalls=self._recalls) if replies else NO_REPLY
        used = [one.usage for one in replies if one.usage is not None]
        return replace(
            replies[-1], usage=sum(used, Usage()) if used else None, first=replies[0].usage, recalls=self._recalls
        )

    @property
    def behind(self) -> tuple[bytes, ...]:
        """What was said behind the client's request, our results among it."""
        return self._rounds.behind

    async def back(self, request: web.Request, upstream: ClientResponse, headers: names.Headers) -> web.StreamResponse:
        """Answer the client. Raises Broken, and ConnectionError for the client's own."""
        out = UpstreamResponse(
            upstream.status, upstream.reason, names.without(headers, "content-length", "content-encoding")
        )
        async with AsyncExitStack() as stack:
            if upstream.headers.get("Content-Type", "").strip().lower().startswith("text/event-stream"):
                await out.prepare(request)
                await self._stream(stack, out, upstream)
                await out.write_eof()
                return out
            return await self._whole(stack, request, upstream, out)

    # --- a stream ---

    async def _stream(self, stack: AsyncExitStack, out: web.StreamResponse, upstream: ClientResponse) -> None:
        conduct = self._conduct
        weaver = _WEAVERS[conduct.api](conduct.curated.tools)
        while True:
            turn = await self._turn(out, upstream, weaver)
            if turn is None:
                return
            self._rounds.end_turn(turn)
            results = await _lively(out, weaver, self._results(turn))
            if not turn.goes_on:
                break
            if self._rounds.count > conduct.rounds + 1:
                await self._ended_badly(out, weaver, b"")
                return
            self._rounds.add_answers(results)
            try:
                upstream = await _lively(out, weaver, self._sent(stack))
            except UPSTREAM as problem:
                conduct.told.report_failure("recall", type(problem).__name__)
                await self._ended_badly(out, weaver, b"")
                return
            if upstream.status != _OK:
                told: list[bytes] = []
                await read_start(pieces_of(upstream), told)
                await self._ended_badly(out, weaver, b"".join(told))
                return
            weaver.begin(spoke=turn.spoke)
        await self._kept()
        await out.write(weaver.end_frames())

    async def _turn(self, out: web.StreamResponse, upstream: ClientResponse, weaver: Weaver) -> ModelTurn | None:
        """What was said in a turn, when all of it has passed; None where the answer ended with it, as it came."""
        tee = Tee(self._conduct.api, _plain_type(upstream))
        self._read.append(tee.reply)
        try:
            async for text in pieces_of(upstream):
                is_much = tee.feed(text)
                if shown := weaver.take(text):
                    await out.write(shown)
                if is_much:
                    await asyncio.to_thread(tee.read)
            if shown := weaver.flush():
                await out.write(shown)
        except (BrokenAnswer, TooLong) as problem:
            await self._kept_so_far(tee, weaver)
            if not weaver.held and (shown := weaver.flush()):
                await out.write(shown)
            raise BrokenAnswer from problem
        if not weaver.held:
            return None
        if weaver.failed or not weaver.ended:
            await self._kept_so_far(tee, weaver)
            if weaver.failed:
                return None
            raise BrokenAnswer
        reply = await asyncio.to_thread(tee.reply)
        self.lost = self.lost or tee.lost
        return turn_of(self._conduct.api, reply, self._conduct.curated.tools)

    async def _kept_so_far(self, tee: Tee, weaver: Weaver) -> None:
        if weaver.later:
            reply = replace(await asyncio.to_thread(tee.reply), finished=False, stop="")
            self._rounds.end_turn(turn_of(self._conduct.api, reply, self._conduct.curated.tools))
            await self._kept()

    async def _ended_badly(self, out: web.StreamResponse, weaver: Weaver, body: bytes) -> None:
        await self._kept()
        self._conduct.told.report_failure("recall", "the model could not go on behind what it recalled")
        await out.write(weaver.failure(body))

    # --- an answer that is no stream ---

    async def _whole(
        self, stack: AsyncExitStack, request: web.Request, upstream: ClientResponse, out: UpstreamResponse
    ) -> web.StreamResponse:
        conduct = self._conduct
        answers: list[Mapping[str, Any]] = []
        hides = False
        while True:
            pieces, found = pieces_of(upstream), list[bytes]()
            try:
                is_all = await read_start(pieces, found)
            except BrokenAnswer:
                if not answers:  # nothing was taken out of it: it breaks off where it broke off
                    await _broken_off(request, out, found)
                raise
            body = b"".join(found)
            if not is_all:
                self.lost = "size"
                return await _passed_on(request, upstream, out if not answers else None, body, pieces)
            value, reply = await asyncio.to_thread(_read_answer, conduct.api, body)
            if upstream.status != _OK or value is None:
                return await _sent_whole(request, upstream, out if not answers else None, body)
            answers.append(value)
            self._read.append(lambda reply=reply: reply)  # type: ignore[misc]
            turn = turn_of(conduct.api, reply, conduct.curated.tools)
            hides = hides or turn.shown != turn.said or bool(turn.own)
            self._rounds.end_turn(turn)
            results = await self._results(turn)
            if not turn.goes_on:
                break
            if self._rounds.count > conduct.rounds + 1:
                raise BrokenAnswer
            self._rounds.add_answers(results)
            try:
                upstream = await self._sent(stack)
            except UPSTREAM as problem:
                raise BrokenAnswer from problem
        await self._kept()
        if hides or len(answers) > 1:
            body = await asyncio.to_thread(merge_answers, conduct.api, answers, conduct.curated.tools)
        return await _sent_whole(request, upstream, out, body)

    # --- between the turns ---

    async def _results(self, turn: ModelTurn) -> list[OwnToolResult]:
        conduct, found = self._conduct, []
        for call in turn.own:
            if self._rounds.count > conduct.rounds:
                result = OwnToolResult(call, _ENOUGH, is_error=True)
            else:
                result = await conduct.guard.recall(conduct.curated, call)
            self._recalls += 1
            conduct.told.report_recall(call.name, is_error=result.is_error)
            found.append(result)
        if not turn.goes_on:
            self._rounds.add_client_answers(found)
        return found

    async def _kept(self) -> None:
        exchange = self._rounds.exchange
        if exchange is None:
            return
        failure = await self._conduct.guard.splice_answer(self._conduct.curated, exchange)
        if failure:
            self._conduct.told.report_failure("splice", failure)

    async def _sent(self, stack: AsyncExitStack) -> ClientResponse:
        conduct, behind = self._conduct, self._rounds.behind
        body = await asyncio.to_thread(continue_request, conduct.curated.body, conduct.api, behind)
        return await stack.enter_async_context(conduct.send(body))


async def _lively(out: web.StreamResponse, weaver: Weaver, doing: Awaitable[T]) -> T:
    """Wait for something, and let the client know from time to time that it is waited for."""
    task = asyncio.ensure_future(doing)
    try:
        while not (await asyncio.wait([task], timeout=_QUIET))[0]:
            await out.write(weaver.alive)
    finally:
        if not task.done():
            task.cancel()
    return task.result()


async def _sent_whole(
    request: web.Request, upstream: ClientResponse, out: UpstreamResponse | None, body: bytes
) -> web.StreamResponse:
    """Send a body as the answer. out: None for one that is not the first upstream's: its status and headers go with it."""
    out = out if out is not None else _begin_answer(upstream)
    out.content_length = len(body)
    await out.prepare(request)
    await out.write(body)
    await out.write_eof()
    return out


async def _passed_on(
    request: web.Request,
    upstream: ClientResponse,
    out: UpstreamResponse | None,
    front: bytes,
    rest: AsyncIterator[bytes],
) -> web.StreamResponse:
    """Send an answer that is too long to be looked at as it comes."""
    out = out if out is not None else _begin_answer(upstream)
    await out.prepare(request)
    await out.write(front)
    async for piece in rest:
        await out.write(piece)
    await out.write_eof()
    return out


async def _broken_off(request: web.Request, out: UpstreamResponse, found: Sequence[bytes]) -> None:
    """Send what came of an answer that has no end."""
    await out.prepare(request)
    await out.write(b"".join(found))


def _begin_answer(upstream: ClientResponse) -> UpstreamResponse:
    headers = names.forward_headers(names.as_sent(upstream.raw_headers), length=False)
    return UpstreamResponse(upstream.status, upstream.reason, names.without(headers, "content-encoding"))


def _read_answer(api: Api, body: bytes) -> tuple[dict[str, Any] | None, ModelReply]:
    return object_in(body), whole(api, body)


def _plain_type(upstream: ClientResponse) -> list[tuple[str, str]]:
    return [("content-type", upstream.headers.get("Content-Type", ""))]
