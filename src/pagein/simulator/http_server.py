"""The simulated provider over HTTP. A single event loop serves every request."""

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

from aiohttp import web

from pagein.errors import BadInput
from pagein.model.json_text import decode_json, encode_json
from pagein.providers.validity import Api
from pagein.providers.wire.wire_format import Endpoint
from pagein.simulator.body_codings import MOST_BYTES, unpack_body
from pagein.simulator.formats import FORMATS, simulated_format
from pagein.simulator.model_call import ProviderCall, SimulatedRefusal, parse_call
from pagein.simulator.named_prompts import NamedPromptRequest
from pagein.simulator.provider_settings import ProviderSettings
from pagein.simulator.records import Book, ProviderBill, Record, bill_of, redact_headers
from pagein.simulator.refusals import FIELD
from pagein.simulator.service import Service, WireAnswer, error_of, is_break
from pagein.simulator.simulated_format import SimulatedFormat

_LOG: Final = logging.getLogger(__name__)
_GRACE: Final = 1.0
_STREAM: Final = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
_KEYS: Final = ("x-api-key", "authorization", "api-key", "x-goog-api-key")
_BEARER: Final = re.compile(r"^bearer\s+", re.IGNORECASE)


class Server:
    """The HTTP server of a simulated provider."""

    def __init__(self, service: Service, settings: ProviderSettings) -> None:
        self._service = service
        self._settings = settings
        self._book = Book(settings.record, settings.most_bodies)
        self._runner: web.AppRunner | None = None
        self._began = settings.now()
        self._skipped = 0.0
        self.url = ""

    @property
    def requests(self) -> list[Record]:
        """The requests so far, in the order of arrival."""
        return self._book.records

    def bill(self) -> ProviderBill:
        """The bill for the model calls so far."""
        return replace(bill_of(self._book.records), stored=self._service.bill_stored(self.now()))

    def advance(self, seconds: float) -> None:
        """Move the provider's clock forward."""
        self._skipped += seconds

    def now(self) -> float:
        """Seconds since 1970, by the provider's clock."""
        return self._began + (self._settings.now() - self._began) * self._settings.speed + self._skipped

    async def start(self) -> str:
        """Start to listen. Return the address."""
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_route("*", "/__provider/{what}", self._report)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # handler_cancellation: if a client disconnects, the work for its request is cancelled
        # auto_decompress: this module unpacks bodies, since aiohttp does not support zstd, which clients use
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, auto_decompress=False, shutdown_timeout=_GRACE
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._settings.host, self._settings.port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        return self.url

    async def stop(self) -> None:
        """End every request and stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/")
        record = Record(self.now(), request.method, request.path_qs, redact_headers(request.headers.items()))
        place = self._book.add(record)
        form, found = _endpoint(path)
        if request.method == "HEAD":
            return self._finish(place, web.Response())
        if found is not None and form.refuses_get and request.method == "GET":
            # makes clients that try a WebSocket first continue over HTTP at once
            return self._finish(place, web.Response(status=426, headers={"Upgrade": "HTTP/1.1"}))
        if request.method == "POST" and found is not None:
            if form.name not in self._settings.apis:
                return self._refuse(place, form.name, SimulatedRefusal(FIELD, 404, f"no such endpoint: {request.path}"))
            return await self._handle_call(request, place, form, found)
        named = await self._answer_named(request, place) if found is None else None
        if named is not None:
            return named
        is_list = path.endswith("/models") and request.method == "GET"
        return self._finish(place, _json(self._models() if is_list else {"ok": True}))

    async def _handle_call(
        self, request: web.Request, place: int, form: SimulatedFormat, found: Endpoint
    ) -> web.StreamResponse:
        api, counts = form.name, not found.is_call
        try:
            raw = unpack_body(await request.read(), request.headers.get("Content-Encoding", ""))
            call = self._read_call(request, raw, api, found)
        except web.HTTPRequestEntityTooLarge:
            return self._refuse(place, api, SimulatedRefusal("M21", 413, "Request exceeds the maximum size"))
        except (BadInput, ValueError) as problem:
            return self._refuse(
                place, api, SimulatedRefusal(FIELD, 400, f"The request body is not valid JSON: {problem}")
            )
        self._book.note(place, api=None if counts else api, model=call.model)
        if self._settings.keeps_bodies:
            self._book.hold(place, call.body, call.size)
        try:
            decided = self._decide(call, counts=counts)
        except Exception as problem:  # noqa: BLE001 - an exception of the script's function is a failure of the provider, and reported as such
            _LOG.exception("a request could not be answered")
            self._book.note(place, outcome="failed", status=500, message=repr(problem))
            return _json(simulated_format(api).error(500), 500)
        if isinstance(decided, SimulatedRefusal):
            return self._refuse(place, api, decided)
        if isinstance(decided, dict):
            return self._finish(place, _json(decided))
        return await self._send_answer(request, place, decided)

    async def _answer_named(self, request: web.Request, place: int) -> web.Response | None:
        """Answer a request for stored prompts; None for another path."""
        try:
            body = decode_json(unpack_body(await request.read(), request.headers.get("Content-Encoding", "")))
        except (BadInput, ValueError, web.HTTPRequestEntityTooLarge):
            body = {}
        call = ProviderCall(
            FORMATS[0].name, body if isinstance(body, dict) else {}, 0, (), key=_key_of(request), at=self.now()
        )
        answered = self._service.answer_named(NamedPromptRequest(request.method, request.path.rstrip("/"), call))
        if answered is None:
            return None
        api, told = answered
        if not isinstance(told, SimulatedRefusal):
            return self._finish(place, _json(told))
        self._book.note(place, outcome="refused", status=told.status, refused=told.rule, message=told.message)
        return _json(simulated_format(api).error(told.status, told.message, told.kind), told.status)

    def _decide(self, call: ProviderCall, *, counts: bool) -> SimulatedRefusal | dict[str, Any] | WireAnswer:
        """Decide the outcome of a call: a refusal, a token count, or an answer."""
        whole = self._without_key(call) or self._service.resolve_call(call)
        if isinstance(whole, SimulatedRefusal):
            return whole
        refusal = self._service.refusal(whole, counts=counts)
        if refusal is not None:
            return refusal
        return self._service.count_tokens(whole) if counts else self._service.answer(whole)

    async def _send_answer(self, request: web.Request, place: int, answer: WireAnswer) -> web.StreamResponse:
        self._book.note(place, turn=answer.index)
        if answer.charged is not None:
            charged = answer.charged
            dollars = charged.prices.usd(charged.bit)
            reason = charged.served.reason
            self._book.note(place, usage=charged.usage, bit=charged.bit, usd=dollars, reason=reason)
        try:
            if answer.turn.wait:
                await asyncio.sleep(answer.turn.wait)
            if answer.reply is None:
                return self._send_failure(request, place, answer)
            if answer.asked.streams:
                return await self._stream_answer(request, place, answer)
            if answer.failure is not None:
                return self._send_failure(request, place, answer)
            return self._finish(place, _json(answer.whole(), headers=_ids(answer)))
        except (ConnectionError, asyncio.CancelledError):
            if self._book.is_pending(place):
                self._book.note(place, outcome="gone")
            raise

    async def _stream_answer(self, request: web.Request, place: int, answer: WireAnswer) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_STREAM, **_ids(answer)})
        self._book.note(place, status=200)
        await response.prepare(request)
        failure = answer.failure
        last = None if failure is None else failure.after
        for place_of_event, event in enumerate(answer.events()):
            if failure is not None and place_of_event == last:
                return await self._break_stream(request, place, answer, response)
            if answer.turn.delay:
                await asyncio.sleep(answer.turn.delay)
            await response.write(event)
        self._book.note(place, outcome="answered")
        await response.write_eof()
        return response

    async def _break_stream(
        self, request: web.Request, place: int, answer: WireAnswer, response: web.StreamResponse
    ) -> web.StreamResponse:
        self._book.note(place, outcome="broken")
        failure = answer.failure
        if failure is None or is_break(failure):
            _close_connection(request)
            return response
        wire = simulated_format(answer.asked.api)
        await response.write(wire.error_event(failure.status, failure.message, failure.kind))
        await response.write_eof()
        return response

    def _send_failure(self, request: web.Request, place: int, answer: WireAnswer) -> web.StreamResponse:
        failure = answer.failure
        if failure is None or is_break(failure):
            self._book.note(place, outcome="broken")
            _close_connection(request)
            return web.Response(status=500)
        headers = {} if failure.retry_after is None else {"retry-after": f"{failure.retry_after:g}"}
        self._book.note(place, outcome="failed", status=failure.status)
        return _json(error_of(failure, answer.asked.api), failure.status, headers)

    def _refuse(self, place: int, api: Api, refusal: SimulatedRefusal) -> web.StreamResponse:
        body = simulated_format(api).error(refusal.status, refusal.message, refusal.kind)
        self._book.note(
            place, api=api, outcome="refused", status=refusal.status, refused=refusal.rule, message=refusal.message
        )
        return _json(body, refusal.status)

    def _without_key(self, call: ProviderCall) -> SimulatedRefusal | None:
        if call.key or not self._settings.needs_key:
            return None
        return SimulatedRefusal("key", 401, simulated_format(call.api).no_key)

    def _read_call(self, request: web.Request, raw: bytes, api: Api, found: Endpoint) -> ProviderCall:
        betas = ",".join(request.headers.getall("anthropic-beta", []))
        return replace(
            parse_call(raw, api),
            path_model=found.model,
            path_streams=found.streams,
            betas=frozenset(one.strip() for one in betas.split(",") if one.strip()),
            key=_key_of(request),
            at=self.now(),
            headers=redact_headers(request.headers.items()),
        )

    async def _report(self, request: web.Request) -> web.StreamResponse:
        match request.match_info["what"]:
            case "bill":
                return _json(self.bill().as_json())
            case "requests":
                return _json([record.as_json() for record in self._book.records[_since(request) :]])
            case "clock":
                given = await request.json() if request.can_read_body else {}
                self.advance(float(given.get("advance", 0)))
                return _json({"now": self.now()})
            case _:
                return _json({"error": "bill, requests or clock"}, 404)

    def _models(self) -> dict[str, Any]:
        rows = [
            {
                "id": name,
                "object": "model",
                "type": "model",
                "display_name": name,
                "created": 0,
                "created_at": "2026-01-01T00:00:00Z",
                "owned_by": "simulated",
            }
            for name in self._settings.models
        ]
        ends = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
        return {"object": "list", "data": rows, "has_more": False, **ends}

    def _finish(self, place: int, response: web.Response) -> web.Response:
        self._book.note(place, outcome="answered", status=response.status)
        return response


def _json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=encode_json(value), status=status, headers=headers, content_type="application/json")


def _endpoint(path: str) -> tuple[SimulatedFormat, Endpoint | None]:
    """Return the format of a path, and the path's meaning in it; the first format for a path without meaning."""
    found = ((form, form.endpoint(path)) for form in FORMATS)
    return next(((form, one) for form, one in found if one is not None), (FORMATS[0], None))


def _key_of(request: web.Request) -> str:
    """A digest of the credentials of a request; "" without them."""
    secret = _BEARER.sub("", next((request.headers[name] for name in _KEYS if name in request.headers), ""))
    return blake2b(secret.encode(), digest_size=8).hexdigest() if secret else ""


def _since(request: web.Request) -> int:
    told = request.query.get("from", "0")
    return int(told) if told.isdecimal() else 0


def _ids(answer: WireAnswer) -> dict[str, str]:
    name = simulated_format(answer.asked.api).request_id
    return {name: f"req_{answer.reply.tag}"} if answer.reply is not None else {}


def _close_connection(request: web.Request) -> None:
    """Close the connection after the bytes written so far, without an error message."""
    if request.transport is not None:
        request.transport.close()
