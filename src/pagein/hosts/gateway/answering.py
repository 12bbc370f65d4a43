"""An answer in which our own tools are called, on its way to the client: gone on with as often as the model recalls."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final

from aiohttp import ClientError, ClientResponse, web

from pagein.hosts.gateway import headers as names
from pagein.hosts.gateway.answers import Relayed
from pagein.hosts.gateway.codings import decoder
from pagein.hosts.gateway.curating import Curated, Guard
from pagein.hosts.gateway.recalls import Answer, RawEvents, Result, event, object_in
from pagein.hosts.gateway.recalls_chat import ChatAnswer
from pagein.hosts.gateway.recalls_messages import MessagesAnswer
from pagein.hosts.gateway.recalls_responses import ResponsesAnswer
from pagein.hosts.gateway.replies import NO_REPLY, Reply
from pagein.model.messages import Usage
from pagein.providers.validity.rules import Api

ROUNDS: Final = 24
"""Turns that one answer may take. A model that recalls more often goes in circles."""
UPSTREAM: Final = (ClientError, OSError)
"""What may go wrong on the way to the upstream and back. TimeoutError is one of the operating system's."""


_ANSWERS: Final[Mapping[Api, Callable[[frozenset[str]], Answer]]] = {
    "anthropic": MessagesAnswer,
    "openai_chat": ChatAnswer,
    "openai_responses": ResponsesAnswer,
}


class Broken(Exception):
    """The upstream broke off in the middle of its answer."""


async def following(upstream: ClientResponse) -> bytes:
    """Whatever has come since, b"" at the end. Raises Broken."""
    try:
        return await upstream.content.readany()
    except UPSTREAM as problem:
        raise Broken from problem


class Answerer:
    """One answer. send: makes a request of the client's, with another body. body: the one that was sent."""

    def __init__(
        self,
        api: Api,
        guard: Guard,
        curated: Curated,
        send: Callable[[bytes], AbstractAsyncContextManager[ClientResponse]],
        failed: Callable[[str, str], None],
    ) -> None:
        self._api: Api = api
        self._guard = guard
        self._curated = curated
        self._send = send
        self._failed = failed
        self._answer: Answer = _ANSWERS[api](curated.tools)
        self.lost = ""

    def reply(self) -> Reply:
        """What was said, over all turns."""
        rounds = self._answer.rounds
        if not rounds:
            return NO_REPLY
        used = [one.usage for one in rounds if one.usage is not None]
        last = rounds[-1]
        return Reply(_sum(used) if used else None, last.message, last.stop, last.finished, last.error, rounds[0].usage)

    async def back(self, request: web.Request, upstream: ClientResponse, headers: names.Headers) -> web.StreamResponse:
        """Answer the client. Raises Broken, and ConnectionError for the client's own."""
        plain = names.without(headers, "content-length", "content-encoding")
        out = Relayed(upstream.status, upstream.reason, plain)
        kind = names.value_of(headers, "content-type").strip().lower()
        async with AsyncExitStack() as stack:
            if kind.startswith("text/event-stream"):
                await out.prepare(request)
                await self._stream(stack, out, upstream)
            else:
                body = await self._whole(stack, upstream)
                out.content_length = len(body)
                await out.prepare(request)
                await out.write(body)
            await out.write_eof()
        return out

    async def _stream(self, stack: AsyncExitStack, out: web.StreamResponse, upstream: ClientResponse) -> None:
        answer, body = self._answer, self._curated.body
        while True:
            await self._turn(out, upstream)
            if not answer.goes_on:
                break
            if len(answer.rounds) >= ROUNDS:
                await out.write(_error(self._api, b""))
                return
            body = answer.go_on(body, await self._results())
            upstream = await self._sent(stack, body)
            if upstream.status != 200:  # noqa: PLR2004 -- OK
                await out.write(_error(self._api, await _read(upstream)))
                return
        await self._kept()
        await out.write(answer.tail())

    async def _turn(self, out: web.StreamResponse, upstream: ClientResponse) -> None:
        events, reading = RawEvents(), decoder(upstream.headers.get("Content-Encoding", ""))
        while part := await following(upstream):
            text = part if reading is None else reading.decode(part)
            shown = b"".join([self._answer.take(raw, one) for raw, one in events.feed(text)])
            if shown:
                await out.write(shown)
        if events.rest:
            await out.write(events.rest)
        self._answer.over()

    async def _whole(self, stack: AsyncExitStack, upstream: ClientResponse) -> bytes:
        answer, body = self._answer, self._curated.body
        shown = answer.take_whole(await _read(upstream))
        while answer.goes_on and len(answer.rounds) < ROUNDS:
            body = answer.go_on(body, await self._results())
            upstream = await self._sent(stack, body)
            if upstream.status != 200:  # noqa: PLR2004 -- OK
                raise Broken
            shown = answer.take_whole(await _read(upstream))
        if answer.goes_on:
            raise Broken
        await self._kept()
        return shown

    async def _results(self) -> list[Result]:
        return [await self._guard.recall(self._curated, call) for call in self._answer.own]

    async def _kept(self) -> None:
        """Have the engine know what the client's message stands for, before the client can send it."""
        if not self._answer.is_spliced:
            return
        failure = await self._guard.spliced(self._curated, self._answer.exchange(await self._results()))
        if failure:
            self._failed("splice", failure)

    async def _sent(self, stack: AsyncExitStack, body: bytes) -> ClientResponse:
        try:
            return await stack.enter_async_context(self._send(body))
        except UPSTREAM as problem:
            raise Broken from problem


async def _read(upstream: ClientResponse) -> bytes:
    reading, parts = decoder(upstream.headers.get("Content-Encoding", "")), []
    while part := await following(upstream):
        parts.append(part if reading is None else reading.decode(part))
    return b"".join(parts)


def _error(api: Api, body: bytes) -> bytes:
    """An error in mid-stream, with the upstream's own words where it has any."""
    told = (object_in(body) or {}).get("error")
    ours = {"type": "api_error", "code": None, "message": "pagein: the model did not come to an end of its recalls"}
    error = told if isinstance(told, dict) else ours
    if api == "anthropic":
        return event({"type": "error", "error": error}, "error")
    if api == "openai_chat":
        return event({"error": error})
    return event({"type": "error", "param": None, "code": None, **error} | {"type": "error"}, "error")


def _sum(used: list[Usage]) -> Usage:
    return Usage(
        sum(one.fresh for one in used),
        sum(one.read for one in used),
        sum(one.written for one in used),
        sum(one.written_1h for one in used),
        sum(one.output for one in used),
    )
