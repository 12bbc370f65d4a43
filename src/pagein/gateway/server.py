"""The gateway as a server: assembly, start and stop."""

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web

from pagein import __version__
from pagein.delegation.call_tree import PROCESS_CALLS
from pagein.gateway.client_setup import CLIENTS
from pagein.gateway.curation.child_asker import ChildAsker
from pagein.gateway.curation.file_follower import FileFollower
from pagein.gateway.curation.guarded_curator import Curator, Guard, PassThrough
from pagein.gateway.curation.keepalive_requests import SleepClock, SystemClock
from pagein.gateway.curation.layer_follower import LayerFollower
from pagein.gateway.curation.session_keeper import SessionKeeper
from pagein.gateway.http import access_token
from pagein.gateway.http.access import GatewayAccess, Handler
from pagein.gateway.http.addresses import in_brackets, is_this_machine, with_token
from pagein.gateway.http.certificates import trust
from pagein.gateway.http.own_answers import leave_as_it_was
from pagein.gateway.http.upstream import AsSent
from pagein.gateway.kill_switch import Switch, default_switch
from pagein.gateway.pages import child_trees, dashboard
from pagein.gateway.pages.call_history import Board, Overview, SetupView
from pagein.gateway.pages.call_report import Reporter
from pagein.gateway.pages.inspector import Inspector
from pagein.gateway.pages.json_logs import LOGGER
from pagein.gateway.pages.metrics import Metrics
from pagein.gateway.pages.session_views import Looker
from pagein.gateway.pages.status_pages import figures, health
from pagein.gateway.pages.store_watch import Look
from pagein.gateway.pages.stored_sessions import SessionArchive
from pagein.gateway.pages.telemetry import open_telemetry
from pagein.gateway.pages.window_orders import WindowHand
from pagein.gateway.relay import Relay
from pagein.gateway.settings import GatewaySettings

_NEAR = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- only compared here: a gateway that listens everywhere is reachable locally at one of them
_CONNECT = 60.0
"""Seconds to connect to an upstream."""
_SETTLE = 2.0
"""Seconds for the last reports and for closing the store, at the end."""
_MOMENT = 2.0
"""Seconds for which calls may wait to be stored before this is told: another process may hold the store for a moment."""
_NOT_STORED = (
    "the store has taken no writes for {seconds:.0f} s. The calls wait in memory, and are lost if the gateway ends. "
    "End what holds the store, or make room on its disk; pagein check tells what is wrong"
)
_QUIET = 0.5
"""Seconds after a request in which no work begins that can wait: the next call of an agent may come at once."""
# Limits on reading headers, high enough that too many or too long headers (`headers.is_too_much`) get the vendor's form of refusal.
_LONGEST = 1 << 20
_MOST = 1 << 12


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """Components of a gateway.

    curator: decides on requests; None for no decisions
    looker: reads sessions for the dashboard
    switch: the kill switch
    logger: destination of logs
    clock: None for the machine's clock
    look: checks the store's soundness
    token: opens the gateway's pages; "" for a temporary token
    follower: keeps the layers over the store up to date; None for layers that commands bring up to date
    keeper: applies the retention of sessions; None for sessions that stay
    files: notes the machines of sessions, and follows their files if set; None for neither
    services: handlers of other services at this address, by path
    children: answers questions to child models; None without child models
    listener: the socket to listen at, in place of the address in the settings; None for that address
    hand: takes the orders of the page; None for a page that only shows
    archive: the sessions of the store for the page; None for the sessions since the start alone
    """

    curator: Curator | None = None
    looker: Looker | None = None
    switch: Switch | None = None
    logger: logging.Logger | None = None
    clock: SleepClock | None = None
    look: Look | None = None
    token: str = ""
    follower: LayerFollower | None = None
    keeper: SessionKeeper | None = None
    files: FileFollower | None = None
    services: Mapping[str, Handler] = field(default_factory=dict)
    children: ChildAsker | None = None
    listener: socket.socket | None = None
    hand: WindowHand | None = None
    archive: SessionArchive | None = None


class Gateway:
    """A gateway that listens between `start` and `stop`."""

    def __init__(self, settings: GatewaySettings, parts: GatewayParts | None = None) -> None:
        given = parts if parts is not None else GatewayParts()
        self._settings = settings
        self._curates = given.curator is not None
        self._switch = given.switch if given.switch is not None else Switch(default_switch(), {})
        self._looker = given.looker
        self._follower = given.follower
        self._services = given.services
        self._children = given.children
        self._listener = given.listener
        self._threads = [one for one in (given.follower, given.keeper, given.files) if one is not None]
        self._guard = Guard(given.curator if given.curator is not None else PassThrough(), settings.budget)
        self.metrics = Metrics()
        self.board = Board()
        logger = given.logger if given.logger is not None else logging.getLogger(LOGGER)
        self._reporter = Reporter(
            self.metrics,
            self.board,
            logger,
            self._guard,
            given.look,
            limit=settings.body_limit,
            measures=given.curator is None,
        )
        self._reporter.telemetry = open_telemetry(settings.otel, __version__) if settings.otel else None
        self._inspector = Inspector(self.board, self._reporter.prompts, given.hand, given.archive)
        self._logger = logger.getChild("http")
        self._clock = given.clock if given.clock is not None else SystemClock()
        self._http: ClientSession | None = None
        self._relay: Relay | None = None
        self._runner: web.AppRunner | None = None
        self._site: web.BaseSite | None = None
        self.token = given.token or access_token.fresh()
        self.began = 0.0
        self.port = 0

    @property
    def url(self) -> str:
        """Return the address for clients on this machine."""
        host = _NEAR.get(self._settings.host, self._settings.host)
        return f"http://{in_brackets(host)}:{self.port}"

    @property
    def page(self) -> str:
        """Return the link that opens the dashboard in a browser. The link grants full access."""
        return with_token(self.url, self.token) + "/"

    @property
    def base_url(self) -> str:
        """Return the base URL for agents, with the token if the gateway requires it from them."""
        return with_token(self.url, self.token) if self.is_open else self.url

    @property
    def is_open(self) -> bool:
        """Return whether other machines can reach the gateway."""
        return not is_this_machine(self._settings.host)

    @property
    def under_way(self) -> int:
        """Return the number of running requests."""
        return self._relay.under_way if self._relay is not None else 0

    def quiet(self) -> float:
        """Return the seconds since the last request ended; 0 while one is under way."""
        return 0.0 if self.under_way else time.monotonic() - self.metrics.ended

    def overview(self, now: float) -> Overview:
        """Return the data of the dashboard's first page."""
        return Overview(
            version=__version__,
            now=now,
            began=self.began,
            off=self._switch.why(),
            curating=self._curates,
            upstreams=dict(self._settings.upstreams),
            notices=list(self.board.notices),
            sessions=self.board.sessions(),
            store=self._reporter.soundness.told or self._backlog(),
            memory=self._memory(),
            vendors=sorted(self._reporter.vendors),
            setup=[
                SetupView(
                    name=one.name, where=one.where, lines=list(one.settings(self.base_url)), notes=list(one.notes)
                )
                for one in CLIENTS
            ],
        )

    async def _health(self) -> dict[str, object]:
        return {
            "status": "ok",
            "version": __version__,
            "off": self._switch.why(),
            "curating": self._curates,
            "store": await self._reporter.soundness.ask() or self._backlog(),
            "memory": self._memory(),
        }

    def _backlog(self) -> str:
        """Return the warning that calls are not stored, with the remedy, or ""."""
        seconds = self._guard.unstored
        return "" if seconds < _MOMENT else _NOT_STORED.format(seconds=seconds)

    def _memory(self) -> str:
        """Return why memory does not follow the store, with the remedy; "" if it does."""
        return "" if self._follower is None else self._follower.problem

    async def start(self) -> None:
        """Listen. Raises OSError if the address is unavailable."""
        self.began = time.time()  # noqa: TID251 -- the rim reads the clock
        self._http = self._open_client()
        self._relay = Relay(
            self._http,
            self._settings,
            self._guard,
            self._switch,
            self._reporter,
            self._clock,
            self.token,
            children=self._children,
        )
        self._runner = await self._run_application(self._relay)
        if self._listener is not None:
            self._site = web.SockSite(self._runner, self._listener)
        else:
            self._site = web.TCPSite(self._runner, self._settings.host, self._settings.port, reuse_address=True)
        try:
            await self._site.start()
        except OSError:
            await self.stop(0)
            raise
        self.port = self._runner.addresses[0][1]
        await self._reporter.soundness.after(failed=False)
        await self._inspector.begin()
        for thread in self._threads:
            thread.start(lambda: self.quiet() < _QUIET)

    def _open_client(self) -> ClientSession:
        """Open the connections to the upstreams."""
        trusted = trust(os.environ)
        if trusted.problem:
            self._reporter.notice(trusted.problem)
        return ClientSession(
            auto_decompress=False,
            connector=TCPConnector(limit=0, ssl=trusted.context),
            cookie_jar=DummyCookieJar(),
            request_class=AsSent,
            timeout=ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=self._settings.silence),
            max_line_size=_LONGEST,
            max_field_size=_LONGEST,
        )

    async def _run_application(self, relay: Relay) -> web.AppRunner:
        """Set up the handlers of requests, without an address yet."""
        runner = web.AppRunner(
            self._application(relay),
            handler_cancellation=True,
            auto_decompress=False,
            access_log=None,
            logger=self._logger,
            max_line_size=_LONGEST,
            max_field_size=_LONGEST,
            max_headers=_MOST,
            shutdown_timeout=1.0,
        )
        await runner.setup()
        return runner

    async def settle(self) -> None:
        """Wait until every finished call is reported."""
        if self._relay is not None:
            await self._relay.wait_for_reports()

    async def drain(self, seconds: float | None = None) -> bool:
        """Refuse new connections, and wait for running calls, for the given time or as configured.

        Return whether every call was completed.
        """
        if self._site is not None:
            await self._site.stop()
            self._site = None
        if self._relay is not None:
            await self._relay.keep_alive.end()
            with contextlib.suppress(TimeoutError):
                limit = self._settings.grace if seconds is None else seconds
                await asyncio.wait_for(self._relay.idle.wait(), limit)
        return not self.under_way

    async def stop(self, seconds: float | None = None, *, settle: float = _SETTLE) -> bool:
        """Stop the gateway. Return whether every call was completed.

        seconds: time for running calls; None for the configured time
        settle: seconds for pending reports of finished calls, and again for closing the store
        """
        whole = await self.drain(seconds)
        self.board.end()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._relay is not None:
            await self._relay.wait_for_reports(settle)
        if self._http is not None:
            await self._http.close()
        if self._reporter.telemetry is not None:
            await asyncio.to_thread(self._reporter.telemetry.close)
        for thread in self._threads:
            await asyncio.to_thread(thread.stop)
        await self._guard.close(settle)
        return whole

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _application(self, relay: Relay) -> web.Application:
        app = web.Application(client_max_size=self._settings.body_limit, logger=self._logger)
        app.on_response_prepare.append(leave_as_it_was)
        access = GatewayAccess(self.token, (self._settings.host, *self._settings.hosts), is_open=self.is_open)
        pages = {
            "/": dashboard.page(),
            "/api/state": dashboard.state(self.overview),
            "/api/session": dashboard.session(self.board, self._looker, self._reporter.meter),
            "/api/search": dashboard.search(self._looker),
            "/api/children": child_trees.trees(PROCESS_CALLS),
            "/metrics": figures(self.metrics),
            **self._inspector.pages(),
        }
        app.router.add_post("/api/order", access.page(self._inspector.order))
        app.router.add_post("/api/children/cancel", access.page(child_trees.cancel(PROCESS_CALLS)))
        for path, page in pages.items():
            app.router.add_get(path, access.page(page), allow_head=False)
        for path, service in self._services.items():
            app.router.add_route("*", path, access.service(service))
        whole, brief = health(self._health), health(self._health, brief=True)
        app.router.add_get("/healthz", access.open_page(whole, brief), allow_head=False)
        rest = access.rest({**pages, "/healthz": whole}, self._services, relay.handle)
        app.router.add_route("*", "/{path:(?s:.*)}", rest)  # a path may contain an escaped line feed
        return app
