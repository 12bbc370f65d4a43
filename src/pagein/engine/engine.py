"""The engine: one store, one workspace, many sessions."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from types import TracebackType
from typing import Final, Literal, Self, TypeVar

from pagein.engine.branch_resolution import NOWHERE
from pagein.engine.cache.prompt_prefix import model_in
from pagein.engine.conversation import Reply, in_thread
from pagein.engine.engine_resources import EngineResources
from pagein.engine.intake.message_chain import first_name
from pagein.engine.log.backlog import UndecidedRequest
from pagein.engine.log.pageout import Pager
from pagein.engine.prepared_request import Observation, PreparedRequest
from pagein.engine.provider_traffic import Traffic
from pagein.engine.reads.session_reads import Outside
from pagein.engine.recall.ingest import WIDE, IngestStore, Limits
from pagein.engine.recall.session_recall import USUAL as RECALL_BOUNDS
from pagein.engine.recall.session_recall import Bounds, RecallBranch, RecallResources, SessionRecall
from pagein.engine.send.claim import DecisionClaim
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.engine.send.undecided_requests import undecided_request
from pagein.engine.session import Session, SessionParts
from pagein.engine.sessions import Sessions
from pagein.errors import BadInput, BadSetting, HostError, StoreError
from pagein.model.messages import Usage
from pagein.policy.eviction.overflow import SAFE, Valve
from pagein.policy.eviction.residency import PRICED, Residency
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.policy.reads.read_request import DEFAULTS, ReadingSettings
from pagein.policy.stubs.manifest import BUDGET
from pagein.ports import BlobStore, JournalStore, SnapshotStore, TokenCounter
from pagein.providers.prices.model_abilities import abilities
from pagein.providers.validity import Api
from pagein.providers.wire.request_body import Envelope
from pagein.providers.wire.tool_offers import ToolOffer

T = TypeVar("T")

_SHORT: Final = 0.2  # seconds for a session that is at work: who asks has waited before
_IN_USE: Final = "there is a session {!r} already; choose another name"


@dataclass(frozen=True, slots=True)
class Settings:
    """All that can be set, as one value.

    residency: when old results leave the window. reading: bounds of what a read is answered with. excluded: patterns of
    file names whose content is never stored, neither by reads nor by paging out. valve: what is done where the window is nearly full.
    recall, ingest: bounds of these. manifest: whether what left is listed for the model, a page at each epoch's edge, of
    manifest_budget tokens at most. rereads: whether what a client's own tools read
    again is answered by a marker or a diff. marks: whether cache marks of the client's are only respected, or ours stand where an
    epoch reads and at the edit frontier. witness: whether an independent checker
    looks at each answer and each request before it goes out (law 2); what it objects to is shown as the file's text, or leaves.
    """

    residency: Residency = PRICED
    reading: ReadingSettings = DEFAULTS
    excluded: tuple[str, ...] = EXCLUDED
    valve: Valve = SAFE
    recall: Bounds = RECALL_BOUNDS
    ingest: Limits = WIDE
    manifest: bool = False
    manifest_budget: int = BUDGET
    witness: bool = False
    rereads: bool = True
    marks: Literal["respected", "extended"] = "extended"

    def __post_init__(self) -> None:
        if self.manifest_budget < 1:
            raise BadSetting(f"manifest_budget must be 1 token or more, not {self.manifest_budget}")


class Engine:
    """Sessions on one store.

    workspace: whose objects may be recalled here. journals: where sessions are kept from one process to the next; None
    for sessions that end with this one; snapshots: where their states are kept beside, None: nowhere. outside: None for sessions that read no files. reach: what recall has beyond the store.
    """

    def __init__(  # noqa: PLR0913 -- what it works with, by name
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
        self._sessions = Sessions(keeps=journals is not None)
        self._shared = EngineResources()
        self._forgettings: int | None = None

    def session(self, name: str, workspace: str | PathLike[str] | None = None, model: str | None = None) -> Session:
        """The session of this name: as it was left, in this process or another, or a new one.

        workspace: the folder in which relative paths of its reads begin, else the engine's own. model: the one it talks to,
        where that is known. One that nobody holds and that was not asked for in a while is taken up again from the store (see
        `Sessions`), and told neither. A store that cannot be asked is no error here: reads and requests tell of it. Raises BadInput
        for a name that is no text, or empty.
        """
        if not isinstance(name, str):
            raise BadInput(f"a session's name is a text, not {name!r}")
        if not name:
            raise BadInput("a session has a name, and this one's is empty")
        self._notice()
        found = self._sessions.get(name, lambda: self._resume_session(name))
        if workspace is not None:
            found.work_in(fspath(workspace))
        if model is not None:
            found.model = model
        return found

    def _notice(self) -> None:
        """Let go of what is remembered of the store where something was ordered to be forgotten since: it is taken up anew from there."""
        try:
            count = self._blobs.forgettings()
        except StoreError:  # reads and requests tell of it
            return
        if count != self._forgettings:
            if self._forgettings is not None:
                self._sessions.clear()
                self._shared = EngineResources(opener=self._shared.opener, owed=self._shared.owed)
            self._forgettings = count

    def _resume_session(self, name: str) -> Session:
        made = Session.resume(name, self._parts())
        if self._outside is not None:
            made.work_in(self._outside.home)
        return made

    def _parts(self) -> SessionParts:
        settings = self._settings
        return SessionParts(
            self._pager,
            self._counter,
            settings.residency,
            self._journals,
            self._begin_session,
            self._outside,
            self._recalling,
            settings.excluded,
            settings.valve,
            settings.manifest_budget if settings.manifest else None,
            settings.rereads,
            settings.marks == "extended",
            self._shared,
            self._snapshots,
            self.session,
        )

    def _recalling(self, branch: RecallBranch) -> SessionRecall:
        return SessionRecall(branch, self._pager, self._keeper, self._reach)

    def _begin_session(self, name: str) -> Session:
        """A new session. Raises BadInput where there is one of this name."""
        made = Session(name, self._parts())

        def begin() -> Session:
            known = False
            if self._journals is not None:
                with contextlib.suppress(StoreError):  # a store that cannot be asked keeps nobody from going on
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
        hint: str | None = None,
        context: str = "",
        offers: Sequence[ToolOffer] | None = None,
        envelope: Envelope | None = None,
        lasting: float = 0.0,
        claim: DecisionClaim | None = None,
    ) -> PreparedRequest:
        """The request to send for one that came over the wire; placed in the session that it belongs to (DESIGN, law 7 and 11).

        at: seconds since 1970. hint: the client's own name for its session, one that several conversations do not share; None:
        told by the first message. context: what the provider's cache depends on besides the body (beta headers, account), in
        any form that does not change while that does not. offers: tools of ours, None: the caller sees to recall; their calls are
        the caller's to answer (see `spliced`). envelope: the body's parts, where the caller had it `opened`.
        lasting: what a keep-alive request may cost, BIT, where the caller sends those that `observe` asks for (`Observation.keep`) and
        tells of them (`kept`); 0: it sends none. claim: by which the caller may give the decision up (`forward` has what goes out then).
        Raises BadInput where no provider would read the body, GivenUp where the caller gave it up, and nothing else: what fails in here is
        told by `failure`.
        """
        envelope = self.parse_body(body, api, hint) if envelope is None else envelope
        try:
            traffic = self._traffic_of(envelope, hint)
        except BadInput:
            raise
        except Exception as problem:  # noqa: BLE001 -- law 7: what fails in here is ours, and the agent must not pay for it
            forwarded = self.forward(body, api, at=at, hint=hint, context=context, envelope=envelope)
            return replace(forwarded, failure=f"{type(problem).__name__}: {problem}")
        return traffic.prepare(body, envelope, at, context, offers, lasting=lasting, claim=claim)

    def forward(
        self,
        body: bytes,
        api: Api,
        *,
        at: float | None,
        hint: str | None = None,
        context: str = "",
        envelope: Envelope | None = None,
        claim: DecisionClaim | None = None,
    ) -> PreparedRequest:
        """The request to send where its decision failed or came too late: as its conversation was sent last with the client's news behind
        it, where that is at hand; else as `untouched` has it. Waits for nobody who decides, and is journaled as soon as that can be done.

        The arguments are as in `prepare`. Raises nothing.
        """
        asked = PreparedRequest(body, api, at, original=body)
        try:
            envelope = self.parse_body(body, api, hint) if envelope is None else envelope
            name = hint or first_name(envelope)
            found = self._shared.forwarding.forward(name, body, envelope, context)
            is_last = found is not None and found[1].is_last and (claim is None or claim.is_given_up)
            self._shared.owed.add(name, UndecidedRequest(body, envelope, context, at, is_last))
            if found is None:
                return replace(asked, body=self.unchanged_request(body, api, hint, patience=_SHORT))
            return undecided_request(asked, name, *found)
        except Exception:  # noqa: BLE001 -- law 7: what fails in here is ours, and the agent must not pay for it
            return asked

    def settle(self) -> bool:
        """Journal what the journals are owed (see `owing`). Whether nothing is owed any more. Raises nothing."""
        if not self._shared.owed.sessions():
            return True
        try:
            if self._journals is not None:  # where nobody can write, no session is to wait for that
                with self._journals.exclusive():
                    pass
        except StoreError:
            return False
        for name in self._shared.owed.sessions():
            with contextlib.suppress(Exception):  # the next one may go well
                self.session(name).traffic.settle()
        return not self._shared.owed.sessions()

    def unchanged_request(self, body: bytes, api: Api, hint: str | None = None, *, patience: float = 1.0) -> bytes:
        """The request that came, for when nothing is to be decided for it: the very bytes, but for thinking that is no longer valid.

        A model that binds its thinking to what stood before it refuses what it thought of a window of ours, once that is gone. Such
        thinking is left out, and nothing else. hint: as in `prepare`. patience: seconds to wait where the session is at work; then all of
        its thinking is left out. Raises nothing: what cannot be told goes out as it came.
        """
        if api != "anthropic":
            return body
        try:
            envelope = self.parse_body(body, api, hint)
            if not abilities(model_in(envelope)).may_bind:
                return body
            return self._traffic_of(envelope, hint).unchanged_request(body, envelope, patience)
        except Exception:  # noqa: BLE001 -- law 7: what fails in here is ours, and the agent must not pay for it
            return body

    def parse_body(self, body: bytes, api: Api, hint: str | None = None) -> Envelope:
        """A body taken apart, at the cost of what is new in it. Raises BadInput where no provider would read it."""
        return self._shared.opener.parse(body, api, hint)

    async def aprepare(
        self,
        body: bytes,
        api: Api,
        *,
        at: float | None,
        hint: str | None = None,
        context: str = "",
        offers: Sequence[ToolOffer] | None = None,
    ) -> PreparedRequest:
        """The same for coroutines: the work is done in a thread."""
        return await in_thread(lambda: self.prepare(body, api, at=at, hint=hint, context=context, offers=offers))

    def observe(self, prepared: PreparedRequest, reply: Reply) -> Observation:
        """What the reply to a request of `prepare` tells (see `Traffic.observe`). Raises nothing."""
        try:
            traffic = self.session(prepared.session).traffic if prepared.session else None
        except Exception as problem:  # noqa: BLE001 -- law 7, as in `prepare`
            return Observation(failure=f"{type(problem).__name__}: {problem}")
        return Observation() if traffic is None else traffic.observe(prepared, reply)

    def note_keepalive(self, prepared: PreparedRequest, usage: Usage, at: float) -> float | None:
        """A window was kept alive (see `Traffic.kept`). None for a request that stands in no session."""
        if not prepared.session:
            return None
        return self.session(prepared.session).traffic.note_keepalive(prepared, usage, at)

    async def aobserve(self, prepared: PreparedRequest, reply: Reply) -> Observation:
        """The same for coroutines: the work is done in a thread."""
        return await in_thread(lambda: self.observe(prepared, reply))

    def splice_answer(self, prepared: PreparedRequest, exchange: RecallExchange) -> str | None:
        """The answer to a request stands for turns that its client did not see (see `Traffic.spliced`)."""
        if not prepared.session:
            return NOWHERE
        try:
            return self.session(prepared.session).traffic.splice_answer(prepared, exchange)
        except Exception as problem:  # noqa: BLE001 -- law 7, as in `prepare`
            return f"{type(problem).__name__}: {problem}"

    def behind(self, prepared: PreparedRequest, work: Callable[[Session], T]) -> T:
        """Do something with the session of a request, where it stands behind that (see `Traffic.behind`)."""
        if not prepared.session:
            raise HostError(NOWHERE)
        session = self.session(prepared.session)
        return session.traffic.behind(prepared, lambda: work(session))

    def _traffic_of(self, envelope: Envelope, hint: str | None) -> Traffic:
        return self.session(hint or first_name(envelope)).traffic

    def recall(self, object_id: str) -> str:
        """What `Session.recall` gives, without a session to journal it in."""
        return self._pager.recall(object_id)

    def close(self) -> None:
        """Let go of the store. Sessions of this engine are of no use afterwards. What the journals are owed is tried once more."""
        self.settle()
        self._sessions.clear()
        self._blobs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
