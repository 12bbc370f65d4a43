"""The page's handlers for a prompt and for the store, for orders, and for the stream of events."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from aiohttp import web

from pagein.errors import BadInput, PageinError
from pagein.gateway.http.access import Handler
from pagein.gateway.pages.call_history import Board
from pagein.gateway.pages.dashboard import answer_json, order_in
from pagein.gateway.pages.prompt_picture import SentPrompt, picture_of, text_of
from pagein.gateway.pages.sent_prompts import SentPrompts
from pagein.gateway.pages.stored_sessions import SessionArchive
from pagein.gateway.pages.window_orders import WindowHand

_LONGEST: Final = 1 << 16
_LONGEST_TEXT: Final = 1 << 20
_BEAT: Final = 15.0
_REST: Final = 0.25
"""Seconds after which a silent stream says that it lives, and between two events."""
_NO_PROMPT: Final = "The last prompt of this session is not in memory: no call of it came through since this gateway started. Its next call shows it."
_NO_STORE: Final = "This gateway only measures: nothing is stored, and nothing can be ordered."


@dataclass(frozen=True, slots=True)
class Inspector:
    """The sources of the page's inspector.

    hand: takes orders; None for a gateway that only measures.
    archive: the sessions of the store; None without a store.
    """

    board: Board
    prompts: SentPrompts
    hand: WindowHand | None = None
    archive: SessionArchive | None = None

    def pages(self) -> dict[str, Handler]:
        """Return the handlers of `GET` by path."""
        return {
            "/api/prompt": self._prompt,
            "/api/part": self._part,
            "/api/result": self._result,
            "/api/stored": self._stored,
            "/api/history": self._history,
            "/api/events": self._events,
        }

    async def order(self, request: web.Request) -> web.StreamResponse:
        """Carry out an order: `{"session", "act", "target", "now"}`."""
        if self.hand is None:
            return answer_json({"error": _NO_STORE}, 404)
        asked = await order_in(request, _LONGEST)
        if not isinstance(asked, dict):
            return asked
        session, act, target = (str(asked.get(name) or "") for name in ("session", "act", "target"))
        hand, now = self.hand, asked.get("now") is True
        answer = await _answered(lambda: hand.order(session, act, target, now=now))
        self.board.tell()
        return answer

    async def begin(self) -> None:
        """Learn how often texts were erased before any request is kept."""
        await self._sent("")

    async def _sent(self, name: str) -> SentPrompt | None:
        if self.archive is not None:
            self.prompts.drop_erased(await asyncio.to_thread(self.archive.forgettings))
        return self.prompts.of(name)

    async def _prompt(self, request: web.Request) -> web.StreamResponse:
        sent = await self._sent(request.query.get("name", ""))
        if sent is None:
            return answer_json({"error": _NO_PROMPT})
        return await _answered(lambda: picture_of(sent))

    async def _part(self, request: web.Request) -> web.StreamResponse:
        sent = await self._sent(request.query.get("name", ""))
        if sent is None:
            return answer_json({"error": _NO_PROMPT})
        place, block = _number(request, "place"), _number(request, "block")

        def part() -> dict[str, object]:
            text = text_of(sent, place, block)
            return {"text": text[:_LONGEST_TEXT], "characters": len(text)}

        return await _answered(part)

    async def _result(self, request: web.Request) -> web.StreamResponse:
        hand = self.hand
        if hand is None:
            return answer_json({"error": _NO_STORE}, 404)
        name, call = request.query.get("name", ""), request.query.get("call", "")
        return await _answered(lambda: hand.result(name, call))

    async def _stored(self, request: web.Request) -> web.StreamResponse:
        archive = self.archive
        if archive is None:
            return answer_json({"error": _NO_STORE})
        return await _answered(lambda: archive.sessions(_now(), request.query.get("q", "")[:_LONGEST]))

    async def _history(self, request: web.Request) -> web.StreamResponse:
        archive, hand, name = self.archive, self.hand, request.query.get("name", "")
        if archive is None:
            return answer_json({"error": _NO_STORE}, 404)

        def history() -> dict[str, object]:
            is_off = False
            if hand is not None:
                with contextlib.suppress(BadInput):
                    is_off = hand.is_off(name)
            return {"calls": archive.calls(name), "off": is_off}

        return await _answered(history)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Stream an event for each change, at most one per quarter of a second, until the page or the gateway ends."""
        headers = {
            "Content-Type": "text/event-stream",
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
        stream = web.StreamResponse(headers=headers)
        await stream.prepare(request)
        with self.board.listener() as changed, contextlib.suppress(ConnectionError):
            await stream.write(b"data: begin\n\n")
            while not self.board.ended:
                try:
                    await asyncio.wait_for(changed.wait(), _BEAT)
                except TimeoutError:
                    await stream.write(b": still here\n\n")
                    continue
                changed.clear()
                await stream.write(b"data: change\n\n")
                await asyncio.sleep(_REST)
        return stream


def _now() -> datetime:
    return datetime.now().astimezone()  # noqa: TID251 -- the rim reads the clock


def _number(request: web.Request, name: str) -> int:
    told = request.query.get(name, "")
    return int(told) if told.lstrip("-").isascii() and told.lstrip("-").isdecimal() and len(told) < 10 else -1  # noqa: PLR2004 -- digits of a place


async def _answered(work: Callable[[], object]) -> web.Response:
    """Return a worker thread's answer, or the reason for a missing answer."""
    try:
        return answer_json(await asyncio.to_thread(work))
    except PageinError as problem:
        return answer_json({"error": str(problem)}, 400)
