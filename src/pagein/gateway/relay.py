"""Relay requests to the upstream, unchanged or as decided by the curator, and relay answers back to the client.

Rules of this file
------------------
1. A request that is not curated is not read: its bytes stream through in both directions, with back-pressure.
2. A request curated without changes goes out with exactly the client's bytes.
3. The answer is forwarded as it arrives, and read in parallel. Reading never changes the forwarded bytes.
4. If the upstream breaks off, so does the answer to the client; if the client hangs up, the upstream call ends.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Final

from aiohttp import ClientResponse, ClientSession, web
from multidict import CIMultiDict
from yarl import URL

from pagein.gateway import farewell
from pagein.gateway.answer_stream import Answerer, AnswerTerms, can_answer
from pagein.gateway.child_route import ChildRoute
from pagein.gateway.curation.child_asker import ChildAsker
from pagein.gateway.curation.guarded_curator import CurationRequest, Guard
from pagein.gateway.curation.keepalive_requests import KeepAlive, KeepAliveWindow, SleepClock, caps_in, window_to_keep
from pagein.gateway.curation.miss_questions import MissQuestions, default_refusals
from pagein.gateway.curation.outgoing_request import Body, BodyCopy, OutgoingRequest, sendable
from pagein.gateway.curation.session_hints import EXTENSION, Hint, from_headers
from pagein.gateway.http import headers as http_headers
from pagein.gateway.http.access import COOKIE
from pagein.gateway.http.addresses import is_near
from pagein.gateway.http.content_codings import decode_body
from pagein.gateway.http.credentials import WHY_UNTOUCHED, has_chatgpt_login, is_subscription
from pagein.gateway.http.headers import Headers
from pagein.gateway.http.own_answers import UpstreamResponse, no_websocket, refusal
from pagein.gateway.http.proxies import Proxies
from pagein.gateway.http.routes import Route, route
from pagein.gateway.http.upstream import remedy
from pagein.gateway.kill_switch import Switch
from pagein.gateway.pages.call_report import FinishedCall, Measurable, Reporter
from pagein.gateway.settings import GatewaySettings
from pagein.gateway.stream.answer_tee import Tee
from pagein.gateway.stream.upstream_answer import UPSTREAM, BrokenAnswer, read_more
from pagein.providers.wire.formats import format_named

_SWITCHED_OFF: Final = ("off", "leaving", "asked")
_LOGIN: Final = "subscription"


class Relay:
    """Handles every request except requests to the gateway itself."""

    def __init__(  # noqa: PLR0913 -- its parts, as the server has them
        self,
        http: ClientSession,
        settings: GatewaySettings,
        guard: Guard,
        switch: Switch,
        reporter: Reporter,
        clock: SleepClock,
        token: str,
        *,
        children: ChildAsker | None = None,
    ) -> None:
        self._http = http
        self._token = token
        self._settings = settings
        self._guard = guard
        self._switch = switch
        self._reporter = reporter
        self._proxies = Proxies()
        self._children = ChildRoute(children, http, settings, self._proxies)
        self._clock = clock
        self.keep_alive = KeepAlive(guard, caps_in(settings), reporter, clock, switch.is_off)
        self._questions = MissQuestions(default_refusals(), reporter.notice, is_on=settings.ask_cache_misses)
        self._reports: set[asyncio.Task[None]] = set()
        self.under_way = 0
        self.idle = asyncio.Event()
        self.idle.set()

    async def handle(self, request: web.Request, path: str) -> web.StreamResponse:
        """Handle a request.

        path: raw path and query, without the parts meant for the gateway
        """
        given = http_headers.without_cookie(http_headers.as_sent(request.raw_headers), COOKIE)
        given = http_headers.without_token(given, self._token)
        found = route(request.method, path, request.headers)
        metrics = self._reporter.metrics
        metrics.count_begin()
        self.under_way += 1
        self.idle.clear()
        status = 0
        try:
            answer = await self._answer(request, given, found)
            status = answer.status
        finally:
            self.under_way -= 1
            if not self.under_way:
                self.idle.set()
            metrics.count_end(found.name, status)
        return answer

    async def wait_for_reports(self, seconds: float | None = None) -> None:
        """Wait until every finished call is reported.

        seconds: maximum wait; remaining reports are cancelled
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._reports:
                    await asyncio.wait(self._reports)
        for task in self._reports:
            task.cancel()
        await asyncio.gather(*self._reports, return_exceptions=True)

    async def _answer(self, request: web.Request, given: Headers, found: Route) -> web.StreamResponse:
        if http_headers.value_of(given, "upgrade").strip().lower() == "websocket":
            return no_websocket(found.vendor)
        if http_headers.is_too_much(request.raw_headers, request.raw_path):
            self._reporter.metrics.count_failure("headers")
            words = f"more than {http_headers.MOST} headers, or a header or path of more than {http_headers.LONGEST:,} bytes"
            return refusal(found.vendor, 431, words, "headers")
        passed = self._passthrough_reason(request, given, found)
        try:
            if found.api is None or passed:
                outgoing = self._unchanged(request, given, found, passed)
                return await self._forward(request, await self._without_bound_thinking(request, given, outgoing))
            return await self._forward(request, await self._curate(request, given, found))
        except web.HTTPRequestEntityTooLarge:
            limit = self._settings.body_limit
            self._reporter.metrics.count_failure("body_limit")
            return refusal(found.vendor, 413, f"the request is larger than {limit:,} bytes (body_limit)", "body_limit")

    def _passthrough_reason(self, request: web.Request, given: Headers, found: Route) -> str:
        """Return why a model call is forwarded unchanged, "" if it is not."""
        if found.api is None:
            return ""
        if self._switch.is_off():
            return "leaving" if self._switch.is_leaving() else "off"
        if http_headers.says_off(given):
            return "asked"
        if is_subscription(given) and not self._settings.subscriptions:
            self._reporter.notice(WHY_UNTOUCHED)
            return _LOGIN
        kind = request.content_type
        return "" if kind.endswith("json") or not http_headers.value_of(given, "content-type") else "content_type"

    def _unchanged(self, request: web.Request, given: Headers, found: Route, passed: str) -> OutgoingRequest:
        data = request.content if request.can_read_body else None
        copy = BodyCopy(request.content, self._settings.body_limit) if data is not None and passed == _LOGIN else None
        return OutgoingRequest(
            found,
            http_headers.forward_headers(given, length=True),
            data if copy is None else copy,
            from_headers(given) if passed else None,
            passed=passed,
            at=self._clock.now(),
            began=time.perf_counter(),
            copy=copy,
        )

    async def _without_bound_thinking(
        self, request: web.Request, given: Headers, outgoing: OutgoingRequest
    ) -> OutgoingRequest:
        """Remove thinking bound to a window of pagein from a request in passthrough while switched off.

        Return other requests unchanged.
        """
        api, coding, limit = (
            outgoing.route.api,
            http_headers.value_of(given, "content-encoding"),
            self._settings.body_limit,
        )
        is_leaving, length = outgoing.passed == "leaving", request.content_length
        is_plain = not coding and length is not None
        if (
            outgoing.passed not in _SWITCHED_OFF
            or api is None
            or not format_named(api).validity.binds_thinking
            or not (is_plain or is_leaving)
        ):
            return outgoing
        if not request.can_read_body or (length or 0) > limit:
            return outgoing
        original = await request.read()
        plain = await asyncio.to_thread(decode_body, original, coding, limit) if coding else original
        if plain is None:
            return replace(outgoing, data=original)
        body = await self._guard.unchanged_request(
            CurationRequest(plain, api, outgoing.hint, outgoing.at, http_headers.beta_features(given))
        )
        sent = http_headers.forward_headers(given, length=False)
        if body == plain:
            return replace(outgoing, headers=sent, data=original)
        if is_leaving:
            self._reporter.notice(farewell.still_bound(outgoing.hint))
        return replace(outgoing, headers=http_headers.without(sent, "content-encoding"), data=body)

    async def _curate(self, request: web.Request, given: Headers, found: Route) -> OutgoingRequest:
        original = await request.read()
        began, at = time.perf_counter(), self._clock.now()
        sent = http_headers.readable_codings(http_headers.forward_headers(given, length=False))
        hint, extension = from_headers(given), http_headers.value_of(given, EXTENSION)
        coding = http_headers.value_of(given, "content-encoding")
        body: bytes | None = original
        if coding:  # in a thread: decompression may take seconds
            body = await asyncio.to_thread(decode_body, original, coding, self._settings.body_limit)
        if body is None or found.api is None:
            return OutgoingRequest(found, sent, original, hint, passed="coding", at=at, began=began)
        decision = await self._guard.decide(
            CurationRequest(
                body,
                found.api,
                hint,
                at,
                http_headers.beta_features(given),
                self._keepalive_limit(given, found, hint),
                documented=self._settings.is_vendors_own(found.vendor),
                model=found.model,
                is_near=is_near(request.remote, given),
                children=self._children.may_ask(given),
                curates=not extension,
            )
        )
        self._reporter.notice_extension(extension)
        if decision.kind is not None:
            self._reporter.report_failure(decision.kind, decision.why)
        data = original if decision.curated.body == body else decision.curated.body
        if coding and data is not original:
            sent = http_headers.without(sent, "content-encoding")
        if decision.curated.tools:
            sent = http_headers.plain(sent)
        return OutgoingRequest(found, sent, data, hint, decision, "", at, began, time.perf_counter() - began)

    def _keepalive_limit(self, given: Headers, found: Route, hint: Hint | None) -> float | None:
        """Return the cost limit of a keep-alive request with these headers, in BIT; 0 for none, None to leave the TTLs to the client."""
        takes_ttls = found.api is not None and format_named(found.api).cache.takes_ttls
        if not takes_ttls or is_subscription(given):
            return None
        return self.keep_alive.cost_limit(hint.key if hint is not None else "") if self._settings.keep_alive else 0.0

    async def _forward(self, request: web.Request, outgoing: OutgoingRequest) -> web.StreamResponse:
        address = URL(self._address(outgoing), encoded=True)
        tee: Tee | Answerer | None = None
        status = 0
        method, given = request.method, outgoing.headers
        first = iter((given,))
        if outgoing.decision is not None:
            self.keep_alive.note_request(outgoing.decision.curated.conversation)

        def send(data: Body) -> AbstractAsyncContextManager[ClientResponse]:
            return self._http.request(
                method,
                address,
                headers=CIMultiDict(next(first, http_headers.continuation_headers(given))),
                data=sendable(data),
                allow_redirects=False,
                skip_auto_headers=http_headers.NOT_ADDED,
                proxy=self._proxies.to(address),
            )

        try:
            async with self._questions.ask(outgoing, send, str(address.origin())) as upstream:
                status = upstream.status
                tee = self._make_reader(outgoing, upstream, send)
                return await self._send_back(request, outgoing, upstream, tee)
        except UPSTREAM as problem:
            status = 504 if isinstance(problem, TimeoutError) else 502
            return self._unreachable(outgoing, status, problem)
        finally:
            if outgoing.route.api is not None:
                self._report(outgoing, status, tee, send)

    def _address(self, outgoing: OutgoingRequest) -> str:
        found, login = outgoing.route, has_chatgpt_login(outgoing.headers)
        return self._settings.address(found.vendor, found.path, has_chatgpt_login=login)

    def _make_reader(
        self,
        outgoing: OutgoingRequest,
        upstream: ClientResponse,
        send: Callable[[bytes], AbstractAsyncContextManager[ClientResponse]],
    ) -> Tee | Answerer | None:
        """Return the reader of the answer.

        A tee beside the stream, or an answerer within it if recall tools were offered.
        """
        if outgoing.route.api is None or outgoing.tools is None or not can_answer(upstream):
            return _tee(outgoing, upstream)
        children = self._children.questions(outgoing, outgoing.tools, self._address(outgoing))
        rounds = self._settings.recalls
        return Answerer(
            AnswerTerms(outgoing.route.api, self._guard, outgoing.tools, send, self._reporter, rounds, children)
        )

    async def _send_back(
        self, request: web.Request, outgoing: OutgoingRequest, upstream: ClientResponse, tee: Tee | Answerer | None
    ) -> web.StreamResponse:
        headers = http_headers.forward_headers(http_headers.as_sent(upstream.raw_headers), length=True)
        if outgoing.warning:
            headers.append((http_headers.WARNING, outgoing.warning))
        answer = UpstreamResponse(upstream.status, upstream.reason, headers)
        try:
            if isinstance(tee, Answerer):
                return await tee.send_back(request, upstream, headers)
            await answer.prepare(request)
            while part := await read_more(upstream):
                await answer.write(part)
                if tee is not None and tee.feed(part):
                    await asyncio.to_thread(tee.read)
            await answer.write_eof()
        except BrokenAnswer:
            self._reporter.report_break("upstream", outgoing.route)
            if request.transport is not None:  # the answer has no end; bytes already written still go out
                request.transport.close()
        except ConnectionError:  # the client's connection: an upstream failure is BrokenAnswer here
            self._reporter.report_break("client", outgoing.route)
        except asyncio.CancelledError:
            self._reporter.report_break("client", outgoing.route)
            raise
        return answer

    def _unreachable(self, outgoing: OutgoingRequest, status: int, problem: BaseException) -> web.Response:
        kind = "upstream_silent" if status == 504 else "upstream"  # noqa: PLR2004 -- gateway timeout
        self._reporter.report_failure(kind, type(problem).__name__)
        vendor = outgoing.route.vendor
        told = f"no answer from {URL(self._address(outgoing), encoded=True).origin()} ({type(problem).__name__}): {remedy(problem)}"
        return refusal(vendor, status, told, kind)

    def _report(
        self,
        outgoing: OutgoingRequest,
        status: int,
        tee: Tee | Answerer | None,
        send: Callable[[bytes], AbstractAsyncContextManager[ClientResponse]],
    ) -> None:
        if outgoing.passed in _SWITCHED_OFF:
            self._reporter.metrics.count_passthrough(outgoing.passed)
            return
        answered = FinishedCall(
            outgoing.route,
            outgoing.hint,
            outgoing.decision,
            outgoing.passed,
            outgoing.at,
            outgoing.added,
            time.perf_counter() - outgoing.began,
            status,
            self._measurable(outgoing),
        )
        self._report_later(self._tell(outgoing, answered, tee, send))

    def _measurable(self, outgoing: OutgoingRequest) -> Measurable | None:
        """Return the data for measuring a call without a decision."""
        copy, api, given = outgoing.copy, outgoing.route.api, outgoing.headers
        parts: list[bytes] = []
        if copy is not None:
            parts = copy.parts if copy.is_whole else []
        elif self._reporter.measures and isinstance(outgoing.data, bytes):
            parts = [outgoing.data]
        if not parts or api is None:
            return None
        coding = http_headers.value_of(given, "content-encoding")
        return Measurable(
            parts, coding, api, outgoing.hint, outgoing.at, http_headers.beta_features(given), outgoing.route.model
        )

    async def _tell(
        self,
        outgoing: OutgoingRequest,
        answered: FinishedCall,
        tee: Tee | Answerer | None,
        send: Callable[[bytes], AbstractAsyncContextManager[ClientResponse]],
    ) -> None:
        """Report a call as finished. A pause of its conversation may begin here."""
        window: KeepAliveWindow | None = None
        try:
            reply, noted = await self._reporter.report_call(answered, tee)
            if noted.keep is not None:
                behind = tee.behind if isinstance(tee, Answerer) else ()
                window = window_to_keep(outgoing, reply, noted.keep, behind, send)
        finally:
            if outgoing.decision is not None:
                self.keep_alive.note_answer(outgoing.decision.curated.conversation, outgoing.at, window)

    def _report_later(self, telling: Coroutine[Any, Any, None]) -> None:
        """Report a call in a separate task, because the handler's task is cancelled when the client hangs up."""
        task = asyncio.get_running_loop().create_task(telling)
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)


def _tee(outgoing: OutgoingRequest, upstream: ClientResponse) -> Tee | None:
    if outgoing.route.api is None or outgoing.passed in _SWITCHED_OFF:
        return None
    return Tee(outgoing.route.api, upstream.headers.items())
