"""The engine: one store, one workspace, many sessions."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias, TypeVar

from pagein.engine.branch_index import NOWHERE
from pagein.engine.cache.cache_evidence import VERDICTS, CacheEvidence
from pagein.engine.conversation import Reply, in_thread
from pagein.engine.engine_resources import EngineResources
from pagein.engine.intake.message_chain import first_name
from pagein.engine.log.backlog import UndecidedRequest
from pagein.engine.log.pageout import Pager
from pagein.engine.log.session_log import SessionLog
from pagein.engine.log.tool_uses import ToolUses
from pagein.engine.prepared_request import Observation, PreparedRequest
from pagein.engine.reads.read_resources import Outside
from pagein.engine.recall.ingest import WIDE, IngestLimits, IngestStore
from pagein.engine.recall.recall_resources import Bounds, RecallResources
from pagein.engine.recall.session_recall import SessionRecall
from pagein.engine.send.call import NO_FACTS, RequestFacts
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.engine.send.request_call import DecisionClaim, UndecidedRequests, undecided_request
from pagein.engine.session import Session
from pagein.engine.session_parts import SessionParts
from pagein.engine.sessions import Sessions
from pagein.errors import BadInput, BadSetting, HostError, StoreError
from pagein.model.messages import Usage
from pagein.policy.economics.tool_deferral import FloorPaging
from pagein.policy.eviction.overflow import SAFE, Valve
from pagein.policy.eviction.residency import PRICED, Residency
from pagein.policy.guards.limits import DEFAULT_GUARDS, GuardSettings
from pagein.policy.pools.pool_values import USUAL, PoolRules
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.policy.reads.read_request import DEFAULTS, ReadingSettings
from pagein.policy.stubs.manifest import BUDGET
from pagein.policy.tiers.tier_rules import BUFFER, MIN_TOKENS
from pagein.ports import BlobStore, JournalStore, SnapshotStore, TokenCounter
from pagein.providers.prices.model_abilities import abilities
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.request_body import Envelope, model_in
from pagein.providers.wire.tool_offers import ToolOffer

T = TypeVar("T")

Hint: TypeAlias = str | Callable[[Mapping[str, bytes]], str | None] | None
"""The client's own name for its session, a function that finds it in a body's fields, or None for the first message."""

_SHORT: Final = 0.2  # seconds to wait for a busy session: the caller has waited before
_IN_USE: Final = "there is a session {!r} already; choose another name"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of an engine.

    residency: when old results are evicted.
    reading: limits of read answers.
    excluded: name patterns of files whose content is never stored, neither by reads nor by evictions.
    valve: settings of the overflow. recall, ingest: limits of recall, and of one ingest.
    guards: how the reads of a model are guarded. pools: bounds of the active content.
    manifest: whether evicted objects are listed for the model at each epoch's edge. manifest_budget: tokens of a page.
    witness: whether an independent checker judges each answer and request first (law 2); rejected ones are undone.
    rereads: whether repeated reads by a client's own tools are answered by a marker or a diff.
    marks: whether pagein only respects the client's cache breakpoints, or adds its own at changes and the frontier.
    floor_paging: when tools that earlier sessions did not use wait for a search. Unless never, attachments are sent once.
    deprecated_tools: whether a model is also offered the tools that `read` has replaced.
    cache_min_tokens, cache_buffer_multiplier: smallest cached block of stability tiers, and the margin on it (`TierRules`).
    layout, pooled_clients: the layout of new conversations; for `pooled` the names of its clients, empty for every client.
    """

    residency: Residency = PRICED
    reading: ReadingSettings = DEFAULTS
    excluded: tuple[str, ...] = EXCLUDED
    valve: Valve = SAFE
    recall: Bounds = field(default_factory=Bounds)
    ingest: IngestLimits = WIDE
    manifest: bool = False
    manifest_budget: int = BUDGET
    witness: bool = False
    rereads: bool = True
    marks: Literal["respected", "extended"] = "extended"
    floor_paging: FloorPaging = "never"
    guards: GuardSettings = DEFAULT_GUARDS
    pools: PoolRules = USUAL
    deprecated_tools: bool = False
    layout: Literal["inline", "pooled"] = "inline"
    pooled_clients: tuple[str, ...] = ()
    cache_min_tokens: int = MIN_TOKENS
    cache_buffer_multiplier: float = BUFFER

    def __post_init__(self) -> None:
        if self.manifest_budget < 1:
            raise BadSetting(f"manifest_budget must be 1 token or more, not {self.manifest_budget}")


class Engine:
    """Sessions on one store.

    evidence: what pauses showed about caches.
    blobs: store of content.
    counter: token counter.
    journals, snapshots: stores of sessions and of their states; None for sessions that end with this process.
    settings: settings; None for the defaults.
    workspace: workspace whose objects may be recalled.
    outside: resources of reads; None for sessions that read no files.
    reach: resources of recall beyond the store.
    """

    def __init__(  # noqa: PLR0913 -- its parts, by name
        self,
        *,
        blobs: BlobStore,
        counter: TokenCounter,
        journals: JournalStore | None = None,
        snapshots: SnapshotStore | None = None,
        settings: Settings | None = None,
        workspace: str = "",
        outside: Outside | None = None,
        reach: RecallResources | None = None,
    ) -> None:
        self._blobs = blobs
        self._journals = journals
        self._snapshots = snapshots
        self._counter = counter
        self._settings = settings if settings is not None else Settings()
        self._pager = Pager(blobs, workspace)
        self._keeper = IngestStore(blobs, workspace, counter)
        self._outside = outside if outside is None or not self._settings.witness else replace(outside, witness=True)
        self._reach = reach if reach is not None else RecallResources()
        self.evidence = CacheEvidence(journals, lambda: self.session(VERDICTS))
        self._shared = EngineResources(evidence=self.evidence)
        # not the method itself: `_notice` replaces what is shared
        self._sessions = Sessions(keeps=journals is not None, end_life=lambda name: self._shared.end_life(name))  # noqa: PLW0108
        self._forgettings: int | None = None
        self._tool_uses = None if journals is None or self._settings.floor_paging == "never" else ToolUses(journals)

    def session(self, name: str, workspace: str | PathLike[str] | None = None, model: str | None = None) -> Session:
        """Return the session of a name: open, stored or new.

        workspace: folder for relative paths of its reads; None for the engine's own.
        model: name of the session's model, if known.

        A session that was idle for a while may be closed and later reopened from the store, without `workspace` and
        `model`. An unavailable store is no error here: reads and requests report it. Raises BadInput for a wrong name.
        """
        if not isinstance(name, str):
            raise BadInput(f"a session's name is a text, not {name!r}")
        if not name:
            raise BadInput("a session has a name, and this one's is empty")
        self._close_after_erasure()
        found = self._sessions.get(name, lambda: self._resume_session(name))
        if workspace is not None:
            found.work_in(fspath(workspace))
        if model is not None:
            found.model = model
        return found

    def _close_after_erasure(self) -> None:
        """Close the sessions if the store erased something since the last look: they may hold the erased text."""
        try:
            count = self._blobs.forgettings()
        except StoreError:  # reads and requests report it
            return
        if count != self._forgettings:
            if self._forgettings is not None:
                self._sessions.clear()
                self._shared = replace(self._shared, forwarding=UndecidedRequests())
            self._forgettings = count

    def _resume_session(self, name: str) -> Session:
        made = Session.resume(name, self._parts(), begin=self._begin_session, again=self.session)
        if self._outside is not None:
            made.work_in(self._outside.home)
        return made

    def _parts(self) -> SessionParts:
        settings = self._settings
        return SessionParts(
            self._pager,
            self._counter,
            settings.residency,
            journals=self._journals,
            outside=self._outside,
            make_recall=self._make_recall,
            excluded=settings.excluded,
            valve=settings.valve,
            manifest=settings.manifest_budget if settings.manifest else None,
            rereads=settings.rereads,
            marks=settings.marks == "extended",
            shared=self._shared,
            snapshots=self._snapshots,
            floor_paging=settings.floor_paging,
            tool_uses=self._tool_uses,
            guards=settings.guards,
            pools=settings.pools,
            pooled=settings.pooled_clients if settings.layout == "pooled" else None,
        )

    def _make_recall(self, log: SessionLog) -> SessionRecall:
        return SessionRecall(log, self._pager, self._keeper, self._reach)

    def _begin_session(self, name: str) -> Session:
        """Return a new session. Raises BadInput if the name is in use."""
        made = Session(name, self._parts(), begin=self._begin_session, again=self.session)

        def begin() -> Session:
            known = False
            if self._journals is not None:
                with contextlib.suppress(StoreError):  # an unavailable store does not stop a new session
                    known = self._journals.leaf(name) is not None
            if known:
                raise BadInput(_IN_USE.format(name))
            return made

        if self._sessions.get(name, begin) is not made:
            raise BadInput(_IN_USE.format(name))
        return made

    def prepare(  # noqa: PLR0913 -- all but the body is about the request, and most of it has a default
        self,
        body: bytes,
        api: Api,
        *,
        at: float | None,
        hint: Hint = None,
        context: str = "",
        offers: Sequence[ToolOffer] | None = None,
        path_model: str = "",
        lasting: float | None = None,
        facts: RequestFacts = NO_FACTS,
        claim: DecisionClaim | None = None,
    ) -> PreparedRequest:
        """Return the request to send for a client's request, after its session has decided (law 7).

        at: seconds since 1970.
        hint: the client's own name for this conversation, or a function that finds it in the body; None for the first message.
        context: further input of the provider's cache (beta headers, account), in any stable form.
        offers: tools for recall and pools, which the caller answers (`splice_answer`); None if that is the caller's business.
        path_model: the model's name, if the path of the request has it.
        lasting: most that a keep-alive request may cost, in BIT, if the caller sends those of `Observation.keep` and
            reports them by `note_keepalive`; 0 if it sends none; None to leave the cache TTLs to the client as well.
        facts: what the caller knows of the request beside its body.
        claim: lets the caller give up the decision; `forward` then returns the request to send.

        Raises BadInput for a body that no provider would read, and GivenUp if the caller gave up; `failure` has the rest.
        """
        envelope, name = self._parse(body, api, hint, path_model)
        try:
            session = self.session(name)  # held here, so that the name means this object as long as it is at work
        except BadInput:
            raise
        except Exception as problem:  # noqa: BLE001 -- law 7: a failure of pagein must not reach the agent
            forwarded = self.forward(body, api, at=at, hint=hint, context=context, path_model=path_model)
            return replace(forwarded, failure=f"{type(problem).__name__}: {problem}")
        return session.traffic.prepare(body, envelope, at, context, offers, lasting=lasting, facts=facts, claim=claim)

    def forward(
        self,
        body: bytes,
        api: Api,
        *,
        at: float | None,
        hint: Hint = None,
        context: str = "",
        path_model: str = "",
        claim: DecisionClaim | None = None,
    ) -> PreparedRequest:
        """Return the request to send after a failed or late decision.

        Sends the last rendering of its conversation with the client's new messages, if known; else the body of
        `unchanged_request`. Does not wait for a running decision. The request is journaled as soon as possible. The
        arguments are as in `prepare`. Raises nothing.
        """
        asked = PreparedRequest(body, api, at, original=body)
        try:
            envelope, name = self._parse(body, api, hint, path_model)
            asked = replace(asked, model=model_in(envelope) or "")
            found = self._shared.forwarding.forward(name, body, envelope, context)
            is_last = found is not None and found[1].is_last and (claim is None or claim.is_given_up)
            self._shared.owed.add(name, UndecidedRequest(body, envelope, context, at, is_last))
            if found is None:
                return replace(asked, body=self.unchanged_request(body, api, hint, patience=_SHORT))
            return undecided_request(asked, name, *found)
        except Exception:  # noqa: BLE001 -- law 7: a failure of pagein must not reach the agent
            return asked

    def settle(self) -> bool:
        """Journal the backlog. Returns whether it is empty now. Raises nothing."""
        if not self._shared.owed.sessions():
            return True
        try:
            if self._journals is not None:  # if the store is locked or read-only, no session should wait for it
                with self._journals.exclusive():
                    pass
        except StoreError:
            return False
        for name in self._shared.owed.sessions():
            with contextlib.suppress(Exception):  # the next session may succeed
                session = self.session(name)
                session.traffic.settle()
        return not self._shared.owed.sessions()

    def unchanged_request(self, body: bytes, api: Api, hint: Hint = None, *, patience: float = 1.0) -> bytes:
        """Return a request without a decision: the client's bytes, without invalid thinking.

        A model that binds thinking to its prompt refuses thinking from a window of pagein's once that window is gone.
        Only such thinking is removed.

        hint: as in `prepare`. patience: seconds to wait for a busy session; after that, all thinking is removed.

        Raises nothing: after a failure the body is returned as it came.
        """
        try:
            if not format_named(api).validity.binds_thinking:
                return body
            envelope, name = self._parse(body, api, hint)
            if not abilities(model_in(envelope)).may_bind:
                return body
            return self.session(name).traffic.unchanged_request(body, envelope, patience)
        except Exception:  # noqa: BLE001 -- law 7: a failure of pagein must not reach the agent
            return body

    def _parse(self, body: bytes, api: Api, hint: Hint, path_model: str = "") -> tuple[Envelope, str]:
        """Parse a body, at the cost of the new part, and name its session. Raises BadInput if no provider would read it."""
        named = None if callable(hint) else hint
        envelope = self._shared.opener.parse(body, api, named, path_model)
        return envelope, (hint(envelope.fields) if callable(hint) else named) or first_name(envelope)

    async def aprepare(
        self,
        body: bytes,
        api: Api,
        *,
        at: float | None,
        hint: Hint = None,
        context: str = "",
        offers: Sequence[ToolOffer] | None = None,
    ) -> PreparedRequest:
        """Run `prepare` in a thread, for coroutines."""
        return await in_thread(lambda: self.prepare(body, api, at=at, hint=hint, context=context, offers=offers))

    def observe(self, prepared: PreparedRequest, reply: Reply) -> Observation:
        """Record the reply to a prepared request (see `Traffic.observe`). Raises nothing."""
        try:
            session = self.session(prepared.session) if prepared.session else None
        except Exception as problem:  # noqa: BLE001 -- law 7, as in `prepare`
            return Observation(failure=f"{type(problem).__name__}: {problem}")
        return Observation() if session is None else session.traffic.observe(prepared, reply)

    def note_keepalive(self, prepared: PreparedRequest, usage: Usage, at: float) -> float | None:
        """Record a keep-alive request (see `Traffic.note_keepalive`). None for a request without a session."""
        if not prepared.session:
            return None
        return self.session(prepared.session).traffic.note_keepalive(prepared, usage, at)

    async def aobserve(self, prepared: PreparedRequest, reply: Reply) -> Observation:
        """Run `observe` in a thread, for coroutines."""
        return await in_thread(lambda: self.observe(prepared, reply))

    def splice_answer(self, prepared: PreparedRequest, exchange: RecallExchange) -> str | None:
        """Record a recall exchange behind a client's answer (see `Traffic.splice_answer`)."""
        if not prepared.session:
            return NOWHERE
        try:
            session = self.session(prepared.session)
            return session.traffic.splice_answer(prepared, exchange)
        except Exception as problem:  # noqa: BLE001 -- law 7, as in `prepare`
            return f"{type(problem).__name__}: {problem}"

    def behind(self, prepared: PreparedRequest, work: Callable[[Session], T]) -> T:
        """Run a function on the session of a request, at the entry after the request (see `Traffic.behind`)."""
        if not prepared.session:
            raise HostError(NOWHERE)
        session = self.session(prepared.session)
        return session.traffic.behind(prepared, lambda: work(session))

    def recall(self, object_id: str) -> str:
        """Return an evicted text as `Session.recall` does, without a journal entry."""
        return self._pager.recall(object_id)

    def close(self) -> None:
        """Try to journal the backlog, then close the store. Sessions of this engine are unusable afterwards."""
        self.settle()
        self._sessions.clear()
        self._reach.close()
        self._blobs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
