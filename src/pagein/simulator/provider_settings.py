"""The settings of a simulated provider."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.tokens.counters import Counter, counter_for
from pagein.providers.validity import Api
from pagein.simulator.formats import FORMATS

ALL_APIS: tuple[Api, ...] = tuple(one.name for one in FORMATS)


CacheKind: TypeAlias = Literal["documented", "unrefreshed", "short-hour"]

KEPT: Final[Mapping[CacheKind, Callable[[CacheRules], CacheRules]]] = {
    "documented": lambda rules: rules,
    "unrefreshed": CacheRules.unrefreshed,
    "short-hour": CacheRules.without_hour,
}
"""The rules that a cache with breakpoints follows, from the documented ones."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The settings of a simulated provider.

    apis: supported wire formats.
    now: clock, seconds since 1970.
    speed: how many seconds pass for one second of `now`.
    prices: a price specification for every model; None: each model's own.
    counter: returns the token counter of a model.
    account: creation date of the accounts (T4); None: recent.
    secret: key of the signatures.
    takes_foreign_thinking: accept signatures made elsewhere.
    needs_key: refuse calls without credentials.
    chunk: characters in one event of a stream.
    keeps_bodies: whether records contain bodies.
    most_bodies: maximum bytes of the stored bodies; the oldest are removed first.
    record: a file of JSON lines; every record is also written there, with its body.
    models: names in the list of models.
    window: maximum tokens of a prompt; None: no limit.
    cache: how long entries of a cache with breakpoints live: as `documented`; `unrefreshed`, each block for its own TTL, however often
        it is read; `short-hour`, five minutes where an hour is charged.
    """

    host: str = "127.0.0.1"
    port: int = 0
    apis: Collection[Api] = ALL_APIS
    now: Callable[[], float] = field(default=time.time)  # noqa: TID251 - the rim reads the clock
    speed: float = 1.0
    prices: str | None = None
    counter: Callable[[str], Counter] = counter_for
    account: date | None = None
    secret: str = "simulated"  # noqa: S105 - protects nothing of value
    takes_foreign_thinking: bool = False
    needs_key: bool = False
    chunk: int = 20
    keeps_bodies: bool = True
    most_bodies: int = 256 << 20
    record: Path | None = None
    window: int | None = None
    cache: CacheKind = "documented"
    models: tuple[str, ...] = ("fake-1", "claude-sonnet-4-5", "claude-sonnet-5-5", "gpt-5.6-sol", "gpt-5.1-codex")
