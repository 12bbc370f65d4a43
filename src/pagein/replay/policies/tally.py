"""The figures counted by a ledger: the totals of a session, and the values of each call."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pagein.model.bill import EpochMark
from pagein.providers.cache_simulator import CacheUsage, Reason
from pagein.replay.prompt.prompt_window import PARTS, Part


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

    def add_request(self, served: CacheUsage, cost: float, floor: float) -> None:
        """Add a request. floor: tokens of the prompt prefix."""
        self.cost += cost
        self.read += served.read
        self.written += served.written
        self.fresh += served.fresh
        self.output += served.output
        self.floor += floor


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

    def add_request(self, served: CacheUsage, cost: float, call: int, parts: Mapping[Part, float] | None) -> None:
        """Add a request to the figures of its call.

        call: number of the call.
        parts: tokens of the prompt by part; None for an extra request beside the call's own.
        """
        while len(self.cost) <= call:
            for column in (self.read, self.written, self.fresh, self.cost):
                column.append(0.0)
        self.read[-1] += served.read
        self.written[-1] += served.written
        self.fresh[-1] += served.fresh
        self.cost[-1] += cost
        if parts is not None:
            self.reasons.append(served.reason)
            self.parts.append({part: parts[part] for part in PARTS})
