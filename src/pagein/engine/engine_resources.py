"""What the sessions of one engine share: what outlives one of them, or must be had while it is at work."""

from dataclasses import dataclass, field

from pagein.engine.intake.body_reader import Opener
from pagein.engine.log.backlog import Backlog
from pagein.engine.send.undecided_requests import UndecidedRequests


@dataclass(frozen=True, slots=True)
class EngineResources:
    """opener: what takes request bodies apart. forwarding: what was sent last. owed: what the journals are owed."""

    opener: Opener = field(default_factory=Opener)
    forwarding: UndecidedRequests = field(default_factory=UndecidedRequests)
    owed: Backlog = field(default_factory=Backlog)
