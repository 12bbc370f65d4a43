"""Records of the requests to the simulated provider, and the bill."""

import os
import stat
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias

from pagein.model.json_text import encode_json
from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.simulator.named_prompts import NamedPromptsBill

Outcome: TypeAlias = Literal["answered", "refused", "failed", "broken", "gone", "pending"]
"""The outcome of a request.

pending: being answered. refused: by a rule. failed: as the script says. broken: ended in mid-stream. gone: the client
    disconnected.
"""

_SECRET: Final = ("authorization", "x-api-key", "api-key", "cookie", "proxy-authorization", "x-goog-api-key")


_OWN: Final = 0o600


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a request.

    at: seconds since 1970, by the provider's clock.
    headers: names in lower case, credentials redacted.
    body: None for a request without a body, and after removal.
    api: wire format; None if the request is not a model call.
    refused: id of the broken rule; None if no rule was broken.
    turn: place of the answering turn in the script, -1 without a turn.
    usage: None if the call never reached the model.
    reason: reason for the cache figures.
    bit: cost in BIT.
    """

    at: float
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any = None
    api: Api | None = None
    model: str = ""
    status: int = 0
    outcome: Outcome = "pending"
    refused: str | None = None
    message: str | None = None
    turn: int = -1
    usage: Usage | None = None
    reason: str | None = None
    bit: float = 0.0
    usd: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The record as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ProviderBill:
    """The bill for the model calls so far.

    usage: the sum over the calls.
    bit: cost in BIT.
    usd: None if a model has no price in dollars.
    models: cost by model.
    stored: the cost of prompts stored under names, beside that of the calls.
    """

    requests: int = 0
    refused: int = 0
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    bit: float = 0.0
    usd: float | None = 0.0
    models: Mapping[str, float] = field(default_factory=dict)
    stored: NamedPromptsBill = field(default_factory=NamedPromptsBill)

    def as_json(self) -> dict[str, Any]:
        """The bill as plain values."""
        return asdict(self)


class Book:
    """The records of a provider, in the order of arrival.

    path: a file of JSON lines for finished requests, readable by its owner only.
    most: maximum bytes of stored bodies; bodies of the oldest finished requests are removed first.
    """

    def __init__(self, path: Path | None = None, most: int = 256 << 20) -> None:
        self._records: list[Record] = []
        self._path = path
        self._most = most
        self._held: deque[tuple[int, int]] = deque()  # places of records with bodies, oldest first, with their bytes
        self._bytes = 0

    @property
    def records(self) -> list[Record]:
        """The records so far."""
        return list(self._records)

    def add(self, record: Record) -> int:
        """Add a record. Return the place."""
        self._records.append(record)
        return len(self._records) - 1

    def hold(self, place: int, body: Any, size: int) -> None:  # noqa: ANN401 - as it came
        """Store the body of a request, with the size in bytes."""
        self._records[place] = replace(self._records[place], body=body)
        self._held.append((place, size))
        self._bytes += size
        self._drop_old_bodies()

    def _drop_old_bodies(self) -> None:
        """Remove old bodies up to the first pending request.

        The body of a pending request is still needed for the file.
        """
        while self._bytes > self._most and len(self._held) > 1 and not self.is_pending(self._held[0][0]):
            place, size = self._held.popleft()
            self._bytes -= size
            self._records[place] = replace(self._records[place], body=None)

    def is_pending(self, place: int) -> bool:
        """Whether a request is still being answered."""
        return self._records[place].outcome == "pending"

    def note(self, place: int, **changes: Any) -> None:  # noqa: ANN401 - fields of Record
        """Update the record of a request."""
        record = self._records[place] = replace(self._records[place], **changes)
        if self._path is not None and "outcome" in changes:
            with open_log(self._path) as file:
                file.write(encode_json(record.as_json()) + b"\n")


def open_log(path: Path) -> BinaryIO:
    """Open a file for appending, readable by the owner only: the file contains the data sent by agents."""
    number = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, _OWN)
    file = os.fdopen(number, "ab")
    found = os.fstat(number)
    if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) & ~_OWN and found.st_uid == os.geteuid():
        os.fchmod(number, _OWN)
    return file


def bill_of(records: Iterable[Record]) -> ProviderBill:
    """Compute the bill for some requests."""
    calls = [record for record in records if record.api is not None]
    charged = [(record, record.usage) for record in calls if record.usage is not None]
    sums = [0, 0, 0, 0, 0]
    models: dict[str, float] = {}
    for record, usage in charged:
        row = (usage.fresh, usage.read, usage.written, usage.written_1h, usage.output)
        sums = [one + more for one, more in zip(sums, row, strict=True)]
        models[record.model] = models.get(record.model, 0.0) + record.bit
    dollars = [record.usd for record, _ in charged]
    known = [one for one in dollars if one is not None]
    return ProviderBill(
        requests=len(calls),
        refused=sum(record.outcome == "refused" for record in calls),
        failed=sum(record.outcome in ("failed", "broken") for record in calls),
        usage=Usage(*sums),
        bit=sum(models.values(), 0.0),
        usd=sum(known, 0.0) if len(known) == len(dollars) else None,
        models=models,
    )


def redact_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Convert headers to a mapping with names in lower case.

    Values of a repeated name are joined, and credentials are redacted.
    """
    found: dict[str, str] = {}
    for name, value in headers:
        low = name.lower()
        shown = "[redacted]" if low in _SECRET else value
        found[low] = f"{found[low]}, {shown}" if low in found else shown
    return found
