"""Report finished calls: to the curator, in metrics, on the pages, and in the log."""

import asyncio
import logging
from dataclasses import asdict, dataclass
from typing import Protocol

from pagein.errors import BadInput
from pagein.gateway.curation.guarded_curator import (
    NOTHING_NOTED,
    CuratedRequest,
    CurationDecision,
    CurationRequest,
    Guard,
    UsageAccount,
)
from pagein.gateway.curation.keepalive_requests import KeepAliveOutcome
from pagein.gateway.curation.session_hints import Hint
from pagein.gateway.farewell import binds
from pagein.gateway.http.content_codings import decode_body
from pagein.gateway.http.routes import Route
from pagein.gateway.pages.call_history import Board, CallRecord
from pagein.gateway.pages.call_meter import CallMeasure, Meter
from pagein.gateway.pages.json_logs import tell
from pagein.gateway.pages.metrics import Metrics
from pagein.gateway.pages.prompt_picture import SentPrompt
from pagein.gateway.pages.sent_prompts import SentPrompts
from pagein.gateway.pages.store_watch import Look, Soundness
from pagein.gateway.pages.telemetry import Telemetry
from pagein.providers.validity import Api
from pagein.providers.wire.session_names import fit_for_logs
from pagein.providers.wire.streams.model_reply import NO_REPLY, ModelReply
from pagein.providers.wire.tool_offers import has_tools

_LONGEST = 300
_CROWDED = (
    "The window of {model} is nearly full in session {session}, and nothing more of it may leave: its requests go out all the same. "
    "Let the client compact, or begin a new conversation."
)
_EXTENSION = (
    "The extension {} decides what enters and leaves its windows. This gateway measures its requests and places cache "
    "breakpoints, and evicts nothing from them."
)


@dataclass(frozen=True, slots=True)
class Measurable:
    """A passthrough request to be measured.

    parts: its body in the content coding `coding`; other fields as in `CurationRequest`
    """

    parts: list[bytes]
    coding: str
    api: Api
    hint: Hint | None
    at: float
    context: str
    model: str = ""


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A finished call, successful or not.

    decision: None for passthrough, with the reason in `passed`
    at: arrival
    added, took: seconds in the gateway, and in total
    status: 0 if no answer was sent
    measurable: the request of a measured passthrough call
    """

    route: Route
    hint: Hint | None
    decision: CurationDecision | None
    passed: str
    at: float
    added: float
    took: float
    status: int
    measurable: Measurable | None = None


class ReplySource(Protocol):
    """The reader of an answer.

    lost: why the answer was not read completely, "" if it was
    """

    lost: str

    def reply(self) -> ModelReply:
        """Return the model's reply."""


class Reporter:
    """Reports calls.

    limit: maximum size of a measured request in bytes
    measures: whether every call is measured, because no decisions are made
    telemetry: the export of finished calls, if any
    """

    def __init__(
        self,
        metrics: Metrics,
        board: Board,
        logger: logging.Logger,
        guard: Guard,
        look: Look | None = None,
        *,
        limit: int = 256 << 20,
        measures: bool = False,
    ) -> None:
        self.metrics = metrics
        self.soundness = Soundness(look, self.notice)
        self.board = board
        self._logger = logger
        self._guard = guard
        self._failures = 0
        self._limit = limit
        self.telemetry: Telemetry | None = None
        self.measures = measures
        self.meter = Meter()
        self.prompts = SentPrompts()
        self.vendors: set[str] = set()

    def notice(self, text: str) -> None:
        """Show a notice on the page and in the log, once."""
        if self.board.notice(text):
            tell(self._logger, "notice", logging.WARNING, text=text)

    def notice_extension(self, extension: str) -> None:
        """Show that a client's own extension decides on its windows, unless `extension` is ""."""
        if extension:
            self.notice(_EXTENSION.format(fit_for_logs(extension)))

    def report_failure(self, kind: str, why: str) -> None:
        """Report a failure hidden from the client."""
        self._failures += 1
        self.metrics.count_failure(kind)
        tell(self._logger, "failure", logging.WARNING, kind=kind, why=why[:_LONGEST])

    def report_recall(self, tool: str, *, is_error: bool) -> None:
        """Report an answered call of a recall tool."""
        self.metrics.count_recall(tool, is_error=is_error)

    def report_keepalive(self, sent: KeepAliveOutcome) -> None:
        """Report a keep-alive request, sent or not."""
        self.metrics.count_keepalive(sent.result, sent.cost or 0.0)
        if sent.result == "kept":
            self.board.add_keepalive(sent.session, sent.cost or 0.0)
        told = asdict(sent) | {"at": round(sent.at, 3)}
        tell(self._logger, "keep_alive", **told)

    def report_break(self, side: str, call: Route) -> None:
        """Report a broken answer."""
        self.metrics.count_break(side)
        tell(self._logger, "break", side=side, route=call.name)

    async def report_call(self, one: FinishedCall, tee: ReplySource | None) -> tuple[ModelReply, UsageAccount]:
        """Report a finished model call. Return its reply and the evaluated usage.

        tee: the reader of the answer
        """
        reply = NO_REPLY if tee is None else await asyncio.to_thread(tee.reply)
        failures = self._failures
        measured = await self._measure(one.measurable, reply)
        noted = await self._observe(one, reply) if measured is None else measured.noted
        call = _call_record(one, reply, noted, measured)
        self._keep_prompt(one, reply, call)
        self.board.add(call)
        if call.crowded:
            self.notice(_CROWDED.format(session=call.session or "without a name", model=call.model or "the model"))
        self._count(one, call)
        self._export(call, one.route.vendor)
        self.vendors.add(one.route.vendor)
        tell(
            self._logger,
            "call",
            route=call.route,
            session=call.session,
            model=call.model,
            status=call.status,
            passed=call.passed,
            failure=call.failure[:_LONGEST],
            epoch=call.epoch,
            recalls=call.recalls,
            deferred=call.deferred,
            foreign=call.foreign,
            replaced=call.replaced,
            crowded=call.crowded,
            added_ms=round(call.added * 1000, 2),
            took_ms=round(call.took * 1000),
            finished=call.finished,
            read=call.usage.read if call.usage else None,
            written=call.usage.written if call.usage else None,
            fresh=call.usage.fresh if call.usage else None,
            output=call.usage.output if call.usage else None,
            shortfall=call.shortfall,
            explanation=call.explanation,
            cause=call.cause,
            who=call.who,
            told=call.told,
            unread=tee.lost if tee is not None else "",
        )
        await self.soundness.after(failed=self._failures > failures or _is_store_failure(one))
        return reply, noted

    async def _measure(self, one: Measurable | None, reply: ModelReply) -> CallMeasure | None:
        if one is None:
            return None
        try:
            return await asyncio.to_thread(self._read, one, reply)
        except BadInput:  # left to the provider to refuse
            return None
        except Exception as problem:  # noqa: BLE001 -- law 7: measuring must not affect the call
            self.report_failure("measure", type(problem).__name__)
            return None

    def _read(self, one: Measurable, reply: ModelReply) -> CallMeasure | None:
        body = decode_body(b"".join(one.parts), one.coding, self._limit)
        if body is None:
            return None
        measured = self.meter.measure(
            CurationRequest(body, one.api, one.hint, one.at, one.context, model=one.model), reply
        )
        if reply.usage is not None:
            sent = SentPrompt(body, one.api, measured.model, one.at, reply.usage.prompt)
            self.prompts.add(measured.session, sent, has_tools=b'"tools"' in body)
        return measured

    def _keep_prompt(self, one: FinishedCall, reply: ModelReply, call: CallRecord) -> None:
        """Keep the bytes of an answered request for the page."""
        usage, api = reply.first or reply.usage, one.route.api
        if one.decision is None or api is None or usage is None:
            return
        prepared = one.decision.curated.prepared
        offers = prepared is None or prepared.sent is None or has_tools(prepared.sent.fields)
        sent = SentPrompt(one.decision.curated.body, api, call.model, one.at, usage.prompt)
        self.prompts.add(call.session, sent, has_tools=offers)

    async def _observe(self, one: FinishedCall, reply: ModelReply) -> UsageAccount:
        if one.decision is None or (one.decision.kind is not None and one.decision.curated.prepared is None):
            return NOTHING_NOTED
        try:
            noted = await self._guard.observe(one.decision.curated, reply)
        except Exception as problem:  # noqa: BLE001 -- the client has its answer; a failure now must not affect the next call (law 7)
            self.report_failure("observe", f"{type(problem).__name__}: {problem}")
            return NOTHING_NOTED
        except asyncio.CancelledError:  # the gateway is ending and waits no longer; the call is still reported
            self.report_failure("observe", "the gateway ended while it was being done")
            return NOTHING_NOTED
        if noted.failure:
            self.report_failure("observe", noted.failure)
        if noted.news:
            self.notice(noted.news)
        return noted

    def _export(self, call: CallRecord, vendor: str) -> None:
        if self.telemetry is None:
            return
        try:
            self.telemetry.add(call, vendor)
        except Exception as problem:  # noqa: BLE001 -- law 7: an export must not affect the call
            self.report_failure("telemetry", f"{type(problem).__name__}: {problem}")

    def _count(self, one: FinishedCall, call: CallRecord) -> None:
        metrics = self.metrics
        if call.usage is not None:
            metrics.count_usage(call.route, call.usage)
        if call.passed:
            metrics.count_passthrough(call.passed)
        else:
            metrics.observe_wait(one.added)
        if call.saved is not None:
            metrics.count_savings(call.saved)
        for side, reason in (("us", call.epoch), ("client", call.foreign)):
            if reason:
                metrics.count_epoch(side)
        if call.cause:
            metrics.count_shortfall(call.cause, call.who, call.shortfall)


def _is_store_failure(one: FinishedCall) -> bool:
    """Return whether a failure changed the request, possibly a failure of the store."""
    return one.decision is not None and one.decision.kind not in (None, "unreadable")


def _call_record(one: FinishedCall, reply: ModelReply, noted: UsageAccount, measured: CallMeasure | None) -> CallRecord:
    curated = one.decision.curated if one.decision is not None else None
    hint, seen = one.hint, measured or curated or CuratedRequest(b"")
    return CallRecord(
        at=one.at,
        session=seen.session or (hint.key if hint is not None else ""),
        source=measured.source if measured is not None else hint.source if hint is not None else "history",
        route=one.route.name,
        model=seen.model,
        status=one.status,
        passed=one.passed,
        failure=(one.decision.why or one.decision.kind or "") if one.decision is not None else "",
        epoch=curated.epoch if curated is not None else "",
        foreign=curated.foreign if curated is not None else "",
        replaced=curated.replaced if curated is not None else 0,
        binds=curated is not None and bool(curated.replaced or curated.tools) and binds(one.route.api, curated.model),
        crowded=curated is not None and curated.crowded,
        saved_characters=curated.saved if curated is not None else 0,
        added=one.added,
        took=one.took,
        finished=reply.finished,
        recalls=reply.recalls,
        deferred=len(curated.prepared.deferred) if curated is not None and curated.prepared is not None else 0,
        usage=reply.usage,
        cost=noted.cost,
        saved=noted.saved,
        shortfall=noted.shortfall,
        explanation=noted.explanation,
        cause=noted.cause,
        who=noted.who,
        told=reply.miss,
    )
