"""Resources that the sessions of an engine share."""

from dataclasses import dataclass, field
from threading import Semaphore

from pagein.engine.cache.cache_evidence import CacheEvidence
from pagein.engine.expected_reports import MOST_WAITING
from pagein.engine.intake.body_reader import Opener
from pagein.engine.log.backlog import Backlog
from pagein.engine.send.request_call import UndecidedRequests


@dataclass(frozen=True, slots=True)
class EngineResources:
    """Resources that outlive a session, or must be available while a session is busy.

    opener: parser of request bodies.
    forwarding: last sent requests.
    owed: backlog of the journals.
    evidence: what pauses showed about the caches of providers.
    waiting: seats for the requests that wait for the report of an answer.
    """

    opener: Opener = field(default_factory=Opener)
    forwarding: UndecidedRequests = field(default_factory=UndecidedRequests)
    owed: Backlog = field(default_factory=Backlog)
    evidence: CacheEvidence = field(default_factory=CacheEvidence)
    waiting: Semaphore = field(default_factory=lambda: Semaphore(MOST_WAITING))

    def end_life(self, session: str) -> None:
        """Forget how requests of a session were rendered: its journal was removed, and in its next life no window is like that."""
        self.forwarding.forget(session)
        self.owed.forget_renderings(session)
