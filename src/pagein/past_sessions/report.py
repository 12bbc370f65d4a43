"""The report of an intake, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about a file. session: the session in question; "" for the whole file."""

    file: str
    reason: str
    session: str = ""


@dataclass(frozen=True, slots=True)
class RememberReport:
    """The result of an intake.

    new, grown: number of sessions that are new in the store, or have new entries there.
    messages: number of messages stored.
    agents: number of sessions in `new` and `grown`, by agent.
    files: number of files read.
    known: number of files that did not change since they were remembered.
    size: bytes of the read files; members of archives count without compression.
    seconds: duration.
    unknown: number of lines in an unknown form.
    skipped: sound files and sessions that were left out, with the reason.
    failed: unreadable or damaged files, with the remedy.
    """

    new: int = 0
    grown: int = 0
    messages: int = 0
    agents: Mapping[str, int] = field(default_factory=dict)
    files: int = 0
    known: int = 0
    size: int = 0
    seconds: float = 0.0
    unknown: int = 0
    skipped: tuple[Remark, ...] = ()
    failed: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class IntakeProgress:
    """The progress of an intake, in files and bytes."""

    done: int
    total: int | None
    file: str
    bytes_done: int
    bytes_total: int | None
