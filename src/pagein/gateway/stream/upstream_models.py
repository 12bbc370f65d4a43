"""Child models behind the gateway: run at the client's own upstream, with the key of the client's current request.

Rules of this file
------------------
1. The key is only in the headers that the call is sent with. It lives as long as the client's request, and is stored nowhere.
2. Only the upstream's own models can be called: the one that the client uses, or another that is named.
3. Each call is made once. A cancelled call closes its connection.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias

from aiohttp import ClientResponse

from pagein.errors import BrokenConnection
from pagein.gateway.stream.answer_tee import Tee
from pagein.gateway.stream.child_wire import asked_wait, child_answer, child_body, http_error, reply_answer
from pagein.gateway.stream.upstream_answer import UPSTREAM, BrokenAnswer, pieces_of, read_start
from pagein.policy.privacy.sent_keys import sent_keys
from pagein.ports import ChildAnswer, ChildRequest
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named

Send: TypeAlias = Callable[[bytes, str], AbstractAsyncContextManager[ClientResponse]]
"""Sends a body to the upstream, for a model of this name, with the client's own headers."""
_OK: Final = 200
_STREAM: Final = "text/event-stream"


class UpstreamModels:
    """Child models at the upstream of one request of a client. Implements `ChildModel`.

    api: wire format of the client's request. model: the client's own model.
    """

    def __init__(self, send: Send, api: Api, model: str) -> None:
        self._send = send
        self._api: Api = api
        self._vendor = format_named(api).http.vendor
        self._model = model

    @property
    def default_model(self) -> str:
        """The client's own model."""
        return f"{self._vendor}/{self._model}"

    def knows(self, model: str, /) -> bool:
        """Return whether a model may be at this upstream: one without a provider, or of this provider."""
        provider, slash, name = model.partition("/")
        return bool(model) and (not slash or (provider == self._vendor and bool(name)))

    async def complete(self, request: ChildRequest, /) -> ChildAnswer:
        """Call the model once. Raises ChildModelError."""
        named = request.model or self.default_model
        model = named.removeprefix(f"{self._vendor}/")
        body = await asyncio.to_thread(child_body, request, self._api, model)
        found: list[bytes] = []
        try:
            async with self._send(body, model) as answer:
                is_whole = await read_start(pieces_of(answer), found)
                status, wait = answer.status, asked_wait(answer.headers, time.time())  # noqa: TID251 -- the rim reads the clock
                sent = sent_keys(answer.request_info.headers.items())
                is_stream = answer.headers.get("Content-Type", "").lower().startswith(_STREAM)
        except (*UPSTREAM, BrokenAnswer) as problem:
            raise BrokenConnection(f"the connection to {named} failed: {type(problem).__name__}") from problem
        whole = b"".join(found)
        if status != _OK:
            raise http_error(status, whole, wait, named, sent)
        if not is_whole:
            raise BrokenConnection(f"the answer of {named} is too long to be read")
        names = [one.name for one in request.tools]
        if not is_stream:
            return await asyncio.to_thread(child_answer, whole, self._api, named, names, sent)
        tee = Tee(self._api, [("content-type", _STREAM)])
        tee.feed(whole)
        return reply_answer(await asyncio.to_thread(tee.reply), self._api, named, names, sent)

    async def close(self) -> None:
        """Do nothing: the connections are the gateway's."""
