"""The figures counted by a ledger: the totals of a session, and the values of each call."""

from dataclasses import dataclass, field

from pagein.model.bill import EpochMark
from pagein.providers.cache_simulator import Reason
from pagein.replay.prompt.prompt_window import Part


@dataclass(slots=True)
class Tally:
    """The figures of a policy so far. Tokens stay unrounded until the report."""

    cost: float = 0.0
    read: float = 0.0
    written: float = 0.0
    fresh: float = 0.0
    output: float = 0.0
    floor: float = 0.0
    calls: int = 0
    faults: int = 0
    recall_cost: float = 0.0
    stress_recalls: int = 0
    rereads: int = 0
    quotes_visible: int = 0
    quotes_lost: int = 0
    quotes_total: int = 0
    stubs: int = 0
    epochs: int = 0
    refused: int = 0
    unrecoverable_bytes: int = 0
    keep_alives: int = 0
    keep_alive_cost: float = 0.0


@dataclass(slots=True)
class Trace:
    """The figures of a policy per call, for the pictures."""

    read: list[float] = field(default_factory=list)
    written: list[float] = field(default_factory=list)
    fresh: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    parts: list[dict[Part, float]] = field(default_factory=list)
    epochs: list[EpochMark] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
