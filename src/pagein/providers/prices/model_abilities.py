"""Request features refused by each model, by date: facts for the validity rules.

A row holds only documented refusals. A model outside the table is not known to refuse anything, so no rule stops a
request to it. A plan for later requests must assume the strictest model (`Abilities.may_bind`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Final, Literal, TypeAlias, get_args

from pagein.providers.prices.model_ids import model_name_in
from pagein.providers.prices.price_table import CATALOGUE

Refused: TypeAlias = Literal[
    "prefill",
    "thinking.enabled",
    "thinking.adaptive",
    "thinking.disabled",
    "no thinking at high effort",
    "forced tools",
    "sampling",
    "two samplers",
    "system messages",
    "tools with effort in Chat",
    "cache options",
    "unsigned calls",
    "named caches",
]
"""A feature that some model answers with an error, in the words of the generated page."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """The abilities of a model from a date on.

    refuses: features that the model is documented to refuse.
    binds: whether its thinking is bound to the prompt before it (T1); None: not known.
    checks: whether a broken binding is refused (T4); if not, the thinking is silently dropped or kept.
    thinks_unasked: whether the model thinks if the request does not say; None: not known.
    carries_thinking: whether the model is known to see its thinking of finished turns again, as long as it is sent.
    source: D: the vendor's documentation; S: secondary; F: reported by users.
    """

    name: str = ""
    refuses: frozenset[Refused] = frozenset()
    binds: bool | None = None
    checks: bool = True
    thinks_unasked: bool | None = None
    carries_thinking: bool = False
    valid_from: date | None = None
    source: str = ""

    @property
    def may_bind(self) -> bool:
        """Whether a change of the prompt must treat thinking as bound to the prefix."""
        return self.binds is not False


UNKNOWN: Final = Abilities()
FEATURES: Final[tuple[Refused, ...]] = get_args(Refused)

_TO_4_5: Final[frozenset[Refused]] = frozenset({"thinking.adaptive", "system messages"})
_4_6: Final[frozenset[Refused]] = frozenset({"prefill", "system messages"})
_4_7: Final[frozenset[Refused]] = frozenset({"prefill", "system messages", "thinking.enabled", "sampling"})
_4_8: Final = _4_7 - {"system messages"}
_ALWAYS: Final[frozenset[Refused]] = _4_8 | {"thinking.disabled"}
_BOUND: Final[frozenset[Refused]] = _ALWAYS | {"forced tools"}

_DOCS: Final = "D: Anthropic thinking, prefill and sampling pages, 2026-10"
_BINDING: Final = "D: Anthropic preserved-thinking and model pages, 2026-10"
_SEEN: Final = "D: as above; F: both samplers at once, client issues 2025-08 to 2026-05"
_GPT: Final = "D: OpenAI prompt caching guide, 2026-11-04"
_GPT_CHAT: Final = "D: OpenAI prompt caching guide; F: tools with effort, client issues 2026-03 to 2026-09"

_GEMINI: Final = "D: Gemini caching and model pages, 2026-07; F: signatures, client issues 2025-11 to 2026-10"


def _claude(
    names: str, refuses: frozenset[Refused], *, unasked: bool | None = None, source: str = _DOCS
) -> Iterable[Abilities]:
    for name in names.split():
        full = f"claude-{name}"
        row = CATALOGUE[full][-1]
        carries = not row.strips_thinking
        yield Abilities(
            full, refuses, row.binds_thinking, thinks_unasked=unasked, carries_thinking=carries, source=source
        )


def _anthropic() -> Iterable[Abilities]:
    yield from _claude("haiku-3-5", _TO_4_5 | {"thinking.enabled"}, unasked=False)
    yield from _claude("opus-4 sonnet-4 haiku-4-5", _TO_4_5, unasked=False)
    yield from _claude("opus-4-1 opus-4-5 sonnet-4-5", _TO_4_5 | {"two samplers"}, unasked=False, source=_SEEN)
    yield from _claude("opus-4-6", _4_6, unasked=False)
    yield from _claude("sonnet-4-6", _4_6 | {"two samplers"}, unasked=False, source=_SEEN)
    yield from _claude("mythos-preview", frozenset({"prefill", "sampling", "thinking.disabled"}))
    yield from _claude("opus-4-7", _4_7, unasked=False)
    yield from _claude("opus-4-8", _4_8, unasked=False)
    for one in _claude("sonnet-5", _4_8 | {"system messages"}, unasked=True):
        yield one
        # The documentation of August says no; client libraries have said yes since this day. So it is no longer known
        # to be refused.
        yield replace(
            one, refuses=_4_8, valid_from=date(2026, 10, 20), source=f"{_DOCS}; S: client libraries, 2026-10-20"
        )
    yield from _claude("opus-5", _4_8 | {"no thinking at high effort"}, unasked=True)
    yield from _claude("fable-5 mythos-5", _ALWAYS, unasked=True)
    # The response of Haiku 5.5 to disabled thinking was not found.
    yield from _claude("haiku-5-5", _BOUND - {"thinking.disabled"}, unasked=True, source=_BINDING)
    yield from _claude("opus-5-5 sonnet-5-5 fable-5-1 fable-5-2 mythos-5-2", _BOUND, unasked=True, source=_BINDING)
    for one in _claude("mythos-5-1", _BOUND, unasked=True, source=_BINDING):
        yield replace(one, checks=False)


def _openai() -> Iterable[Abilities]:
    for name, rows in CATALOGUE.items():
        if rows[0].provider != "openai":
            continue
        refuses: set[Refused] = set() if rows[0].cache.model == "breakpoints" else {"cache options"}
        chat = name.startswith(("gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6"))
        if chat:
            refuses.add("tools with effort in Chat")
        yield Abilities(name, frozenset(refuses), binds=False, source=_GPT_CHAT if chat else _GPT)


def _google() -> Iterable[Abilities]:
    for name, rows in CATALOGUE.items():
        if rows[0].provider != "google":
            continue
        refuses: set[Refused] = set()
        if not name.startswith("gemini-2"):
            refuses.add("unsigned calls")
        if name.startswith(("gemini-3.6", "gemini-3.7", "gemini-3.8", "gemini-4")) or name == "gemini-3.5-flash-lite":
            refuses.add("prefill")
        if name.startswith("gemini-4"):
            refuses.add("named caches")
        yield Abilities(name, frozenset(refuses), binds=False, source=_GEMINI)


def _by_name(rows: Iterable[Abilities]) -> dict[str, tuple[Abilities, ...]]:
    table: dict[str, tuple[Abilities, ...]] = {}
    for row in rows:
        table[row.name] = (*table.get(row.name, ()), row)
    return table


TABLE: Final = _by_name([*_anthropic(), *_openai(), *_google()])
"""Rows of each model, oldest first."""


@lru_cache(maxsize=256)
def abilities(model: str | None, on: date | None = None) -> Abilities:
    """The documented abilities of a model on a day. UNKNOWN for a model outside the table.

    model: id as recorded by hosts.
    on: the day; None: the newest row.
    """
    name = model_name_in(model, TABLE) if model else None
    if name is None:
        return UNKNOWN
    rows = TABLE[name]
    began = (row for row in reversed(rows) if on is None or row.valid_from is None or row.valid_from <= on)
    return next(began, rows[0])
