"""A recorded session: what its host was, and what was said, in order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pagein.model.messages import Recorded
from pagein.replay.record.usage_tally import UsageTally

CARRIED_OVER: Final = "carried_over"
"""Why an assistant message ends that stands again in a window begun anew: it is no call. Text that stands again is of this kind."""


@dataclass(frozen=True, slots=True)
class SessionHead:
    """Who recorded the session.

    source: the group it is reported under (the corpus source, else the agent's name).
    parent: id of the session that started this one as a sub-agent, else None.
    window: context window in tokens, where the recording tells it.
    flags: what a reader of figures should know (`no_times`, `torn_tail`, `branches: 2`, ...); values are JSON-able.
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


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """One session of one agent. `entries` may be consumed once; its memory is one entry at a time.

    tally: what the recording's own usage lines add up to, full once the entries are consumed. None where it tells nothing for this session alone.
    """

    head: SessionHead
    entries: Iterator[Recorded]
    tally: UsageTally | None = None
