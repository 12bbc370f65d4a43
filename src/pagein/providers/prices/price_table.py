"""The price table: one row per model and first day of a price. Dollars are per million tokens.

Without a documented minimum prefix, the largest known minimum is assumed. Promotional prices are left out, and so are
batch and fast modes, which multiply on top.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date

from pagein.providers.caches.cache_rules import (
    ANTHROPIC,
    DEEPSEEK,
    GEMINI_IMPLICIT,
    OPENAI,
    OPENAI_LEGACY,
    UNKNOWN_MINIMUM,
    VLLM,
)
from pagein.providers.prices.token_prices import Cliff, Peak, Prices

LARGE_WINDOW = 1_000_000

_DOCS = "D: Anthropic documentation as of 2026-08-22"
_MODEL_PAGES = "D: Anthropic model pages, 2026-10; S: dates and cache reads, change logs of price trackers"
_LATER = "S: SDK documentation and pull requests, 2026-09 to 2026-11"
_OPENAI = "D: OpenAI prompt caching guide, 2026-11-04; S: prices"
_OLDER = "D: OpenAI prompt caching guide; S: prices in published client tables"
_DEEPSEEK = "D: DeepSeek pricing from 2026-10-27"
_GEMINI = "D: Gemini caching guide, 2026-07-07; S: prices, price trackers and client tables, 2026-01 to 2026-10"

_DAY = 86_400.0
_GPT_WINDOW = 1_050_000
_LONG_PROMPT = Cliff(272_000, input=2.0, output=1.5)
_GEMINI_LONG = Cliff(200_000, input=2.0, output=1.5)
_CHINA_OFFICE_HOURS = Peak(2.0, ((1, 4), (6, 10)))


def _claude(name: str, usd: tuple[float, float] | None, least: int, *, source: str = _DOCS) -> Prices:
    """A Claude model: dollars for input and output (None: not published), minimum prefix."""
    return Prices(
        name=f"claude-{name}",
        provider="anthropic",
        input_usd=usd[0] if usd else None,
        read=0.1,
        write_5m=1.25,
        write_1h=2.0,
        output=usd[1] / usd[0] if usd else 5.0,
        cache=ANTHROPIC.least(least),
        window=LARGE_WINDOW,
        source=source,
    )


def _small(name: str, usd: tuple[float, float] | None, least: int, *, strips: bool = True) -> Prices:
    """A Claude model with the smaller window. Every small model except Opus 4.5 strips earlier thinking."""
    return replace(_claude(name, usd, least), window=200_000, strips_thinking=strips)


def _bound(
    name: str, usd: tuple[float, float], read: float, since: date | None, least: int = UNKNOWN_MINIMUM
) -> Prices:
    """A Claude model that binds thinking to the prefix."""
    row = _claude(name, usd, least, source=_MODEL_PAGES if name.endswith("5-5") else _LATER)
    return replace(row, read=read, valid_from=since, binds_thinking=True)


def _openai(name: str, usd: tuple[float, float, float], since: date) -> Prices:
    """A model from GPT-5.6 on: dollars for input, read and output.

    A write costs 1.25 times the input, a write that lasts 12 h costs 2.5 times.
    """
    base, read, out = usd
    return Prices(
        name=name,
        provider="openai",
        input_usd=base,
        read=read / base,
        write_5m=1.25,
        write_1h=2.5,
        output=out / base,
        cache=OPENAI,
        window=_GPT_WINDOW,
        cliff=_LONG_PROMPT,
        valid_from=since,
        source=_OPENAI,
    )


def _automatic(name: str, usd: tuple[float, float], read: float, window: int, ttl: float = 600.0) -> Prices:
    """An OpenAI model with automatic prefix caching and no fee for writes."""
    return Prices(
        name=name,
        provider="openai",
        input_usd=usd[0],
        read=read,
        write_5m=1.0,
        write_1h=1.0,
        output=usd[1] / usd[0],
        cache=OPENAI_LEGACY.with_ttl(ttl),
        window=window,
        cliff=_LONG_PROMPT if window == _GPT_WINDOW else None,
        source=_OLDER,
    )


def _deepseek(name: str, usd: tuple[float, float, float], since: date) -> Prices:
    hit, base, out = usd
    return Prices(
        name=name,
        provider="deepseek",
        input_usd=base,
        read=hit / base,
        write_5m=1.0,
        write_1h=1.0,
        output=out / base,
        cache=DEEPSEEK,
        window=LARGE_WINDOW,
        peak=_CHINA_OFFICE_HOURS,
        valid_from=since,
        source=_DEEPSEEK,
    )


def _gemini(
    name: str,
    usd: tuple[float, float],
    read: float | None = None,
    *,
    least: int = 4096,
    cliff: Cliff | None = None,
    told: str = "",
) -> Prices:
    """The prices of a Gemini model, in dollars per million tokens.

    usd: input and output.
    read: cache reads; None if not published: then a tenth of the input price is assumed.
    """
    unknown = "; price of a read unknown" if read is None else ""
    return Prices(
        name=name,
        provider="google",
        input_usd=usd[0],
        read=0.1 if read is None else read / usd[0],
        write_5m=1.0,
        write_1h=1.0,
        output=usd[1] / usd[0],
        cache=GEMINI_IMPLICIT.least(least),
        window=LARGE_WINDOW,
        cliff=cliff,
        source=f"{_GEMINI}{unknown}{told}",
    )


def _anthropic_rows() -> Iterable[Prices]:
    yield _bound("fable-5-2", (8, 40), 0.025, date(2026, 10, 1))
    yield _bound("mythos-5-2", (8, 40), 0.025, date(2026, 10, 1))
    yield _bound("fable-5-1", (10, 50), 0.025, date(2026, 9, 1), 512)
    yield _bound("mythos-5-1", (10, 50), 0.025, date(2026, 9, 1), 512)
    yield _claude("fable-5", (10, 50), 512)
    yield _claude("mythos-5", (10, 50), 512)
    yield _bound("opus-5-5", (4, 20), 0.05, date(2026, 9, 22))
    yield _claude("opus-5", (5, 25), 512)
    yield _bound("sonnet-5-5", (2, 10), 0.1, date(2026, 9, 28))
    yield _bound("sonnet-5-5", (2, 10), 0.05, date(2026, 10, 7))
    yield _claude("sonnet-5", (2, 10), 1024)
    yield replace(_bound("haiku-5-5", (0.1, 0.5), 0.1, date(2026, 10, 7)), cliff=Cliff(100_000, 5.0, 5.0))
    yield _claude("opus-4-8", (5, 25), 1024)
    yield _claude("opus-4-7", (5, 25), 2048)
    yield _claude("opus-4-6", (5, 25), 4096)
    yield _claude("sonnet-4-6", (3, 15), 1024)
    yield _small("opus-4-5", (5, 25), 4096, strips=False)
    yield _small("sonnet-4-5", (3, 15), 1024)
    yield _small("haiku-4-5", (1, 5), 4096)
    yield _small("opus-4-1", (15, 75), 1024)
    yield _small("opus-4", (15, 75), 1024)
    yield _small("sonnet-4", (3, 15), 1024)
    yield _small("haiku-3-5", None, 2048)
    yield _claude("mythos-preview", None, 2048)


def _openai_rows() -> Iterable[Prices]:
    yield _openai("gpt-6.1-sol", (2, 0.10, 10), date(2026, 9, 29))
    yield _openai("gpt-6.1-terra", (1, 0.05, 5), date(2026, 10, 26))
    yield _openai("gpt-6-sol", (2, 0.2, 10), date(2026, 9, 22))
    yield _openai("gpt-6-luna", (0.1, 0.01, 0.5), date(2026, 9, 22))
    yield _openai("gpt-5.6-sol", (5, 0.5, 30), date(2026, 7, 9))
    yield _openai("gpt-5.6-terra", (2, 0.2, 12), date(2026, 7, 9))
    yield _openai("gpt-5.6-luna", (0.2, 0.02, 1.2), date(2026, 7, 9))
    yield _automatic("gpt-5.5", (5, 30), 0.1, _GPT_WINDOW, ttl=_DAY)
    yield _automatic("gpt-5.4", (2.5, 15), 0.1, _GPT_WINDOW)
    yield _automatic("gpt-5.4-mini", (0.75, 4.5), 0.1, 400_000)
    yield _automatic("gpt-5.3-codex", (1.75, 14), 0.1, 400_000)
    yield _automatic("gpt-5.2", (1.75, 14), 0.1, 400_000)
    yield _automatic("gpt-5.1", (1.25, 10), 0.1, 400_000)
    yield _automatic("gpt-5", (1.25, 10), 0.1, 400_000)
    yield _automatic("gpt-5-mini", (0.25, 2), 0.1, 400_000)
    yield _automatic("gpt-4.1", (2, 8), 0.25, 1_047_576)
    yield _automatic("gpt-4o", (2.5, 10), 0.5, 128_000)


def _other_rows() -> Iterable[Prices]:
    yield _deepseek("deepseek-v4-flash", (0.003, 0.15, 0.60), date(2026, 10, 27))
    yield _deepseek("deepseek-v4-pro", (0.022, 0.66, 1.98), date(2026, 10, 27))
    yield from _google_rows()
    yield Prices(
        name="self-hosted",
        provider="vllm",
        input_usd=None,
        read=0.0,
        write_5m=1.0,
        write_1h=1.0,
        output=5.0,
        cache=VLLM,
        source="D: vLLM documentation; reads cost no prefill",
    )


def _google_rows() -> Iterable[Prices]:
    yield _gemini("gemini-4-argon", (2, 10), 0.1, told="; twice as much from 2026-12-01")
    yield _gemini("gemini-3.8-flash", (0.75, 3.75), told="; twice as much from 2027-01-01")
    yield _gemini("gemini-3.7-flash", (1.5, 7.5), told="; half as much until 2027-12-31")
    yield _gemini("gemini-3.6-flash", (1.5, 7.5), told="; half as much seen on 2026-09-04")
    yield _gemini("gemini-3.5-flash", (1.5, 9), 0.15)
    yield _gemini("gemini-3.5-flash-lite", (0.3, 2.5))
    yield _gemini("gemini-3.1-pro", (2, 12), 0.2, cliff=_GEMINI_LONG)
    yield _gemini("gemini-3.1-flash-lite", (0.25, 1.5), 0.025)
    yield _gemini("gemini-3-pro", (2, 12), cliff=_GEMINI_LONG)
    yield _gemini("gemini-3-flash", (0.5, 3), 0.05)
    yield _gemini("gemini-2.5-pro", (1.25, 10), 0.125, least=2048, cliff=_GEMINI_LONG)
    yield _gemini("gemini-2.5-flash", (0.3, 2.5), 0.03, least=2048)
    yield _gemini("gemini-2.5-flash-lite", (0.1, 0.4), least=2048)


def _by_name(rows: Iterable[Prices]) -> dict[str, tuple[Prices, ...]]:
    table: dict[str, tuple[Prices, ...]] = {}
    for row in rows:
        table[row.name] = (*table.get(row.name, ()), row)
    return table


CATALOGUE = _by_name([*_anthropic_rows(), *_openai_rows(), *_other_rows()])
"""Rows of each model, oldest first."""

ALIASES = {
    "claude-3-5-haiku": "claude-haiku-3-5",
    "claude-opus-4-0": "claude-opus-4",
    "claude-sonnet-4-0": "claude-sonnet-4",
    "gpt-5.5-codex": "gpt-5.5",
    "gpt-5.4-codex": "gpt-5.4",
    "gpt-5.3-codex-spark": "gpt-5.3-codex",
    "gpt-5.2-codex": "gpt-5.2",
    "gpt-5.1-codex": "gpt-5.1",
    "gpt-5.1-codex-max": "gpt-5.1",
    "gpt-5-codex": "gpt-5",
    "gpt-5-chat": "gpt-5",
    "gpt-5.1-codex-mini": "gpt-5-mini",
    "gpt-5.6": "gpt-5.6-sol",
    "deepseek-flash": "deepseek-v4-flash",
    "vllm": "self-hosted",
    "sglang": "self-hosted",
    "llama.cpp": "self-hosted",
}
"""Alternative ids of models in the table, as recorded by hosts."""
