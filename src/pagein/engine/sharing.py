"""What the sessions of one engine share: what outlives one of them, or must be had while it is at work."""

from dataclasses import dataclass, field

from pagein.engine.forwarding import Forwarding
from pagein.engine.opening import Opener
from pagein.engine.owing import Owed


@dataclass(frozen=True, slots=True)
class Shared:
    """opener: what takes request bodies apart. forwarding: what was sent last. owed: what the journals are owed."""

    opener: Opener = field(default_factory=Opener)
    forwarding: Forwarding = field(default_factory=Forwarding)
    owed: Owed = field(default_factory=Owed)
