"""A recorded session: facts of its host, and its entries in order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pagein.model.messages import Recorded
from pagein.replay.record.usage_tally import UsageTally

CARRIED_OVER: Final = "carried_over"
"""Stop reason of an assistant message repeated in a new window, which is no call; also the kind of repeated text."""


@dataclass(frozen=True, slots=True)
class SessionHead:
    """The origin of a session.

    source: group in reports (the corpus source, else the agent's name).
    is_named: whether the recording names the session; if not, the id is made from the name of its file.
    parent: id of the session that started this one as a sub-agent, else None.
    window: context window if recorded, tokens.
    flags: facts for a reader of the figures (`no_times`, `torn_tail`, `branches: 2`, ...); values are JSON-able.
    """

    id: str
    source: str
    agent: str
    file: str
    models: tuple[str, ...] = ()
    parent: str | None = None
    cwd: str | None = None
    window: int | None = None
    flags: Mapping[str, object] = field(default_factory=dict)
    is_named: bool = True


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A session of a single agent.

    entries: may be consumed once; only one entry is in memory at a time.
    tally: sum of the recording's own usage lines, complete after the last entry; None if not reported for this session
    alone.
    """

    head: SessionHead
    entries: Iterator[Recorded]
    tally: UsageTally | None = None
