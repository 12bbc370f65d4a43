"""How a simulated provider is set up."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from pagein.providers.tokens.counters import Counter, counter_for
from pagein.providers.validity import Api

ALL_APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """How a provider is set up.

    apis: the formats that it speaks. now: seconds since 1970. speed: how many seconds pass for one of `now`. prices: a price
    specification for all models, None: each model's own. counter: from a model to what counts its tokens. account: when the accounts
    were made (T4), None: lately. secret: what signatures are made with. takes_foreign_thinking: signatures made elsewhere pass.
    needs_key: calls without credentials are refused. chunk: characters in one event of a stream. keeps_bodies: whether records hold
    bodies. most_bodies: bytes of them at most, then those of the oldest are let go. record: a file of JSON lines that every record is
    written to as well, with its body. models: what the list of models names. window: tokens of a prompt at most, more are refused; None:
    no prompt is too long.
    """

    host: str = "127.0.0.1"
    port: int = 0
    apis: Collection[Api] = ALL_APIS
    now: Callable[[], float] = field(default=time.time)  # noqa: TID251 - the rim reads the clock
    speed: float = 1.0
    prices: str | None = None
    counter: Callable[[str], Counter] = counter_for
    account: date | None = None
    secret: str = "simulated"  # noqa: S105 - signs nothing of worth
    takes_foreign_thinking: bool = False
    needs_key: bool = False
    chunk: int = 20
    keeps_bodies: bool = True
    most_bodies: int = 256 << 20
    record: Path | None = None
    window: int | None = None
    models: tuple[str, ...] = ("fake-1", "claude-sonnet-4-5", "claude-sonnet-5-5", "gpt-5.6-sol", "gpt-5.1-codex")
