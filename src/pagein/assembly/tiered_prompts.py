"""Prompts assembled from files, symbol entries and history, in the tiered layout.

For callers who build each prompt themselves. Tiers are kept in the journal of a session, in the file of the seed design,
or only in memory.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from math import ceil
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from pagein.errors import BadInput, BadSetting, StoreError
from pagein.model.entries import EntryId, NoteEntry
from pagein.model.laid_prompts import LaidPrompt, LayoutFacts, PromptContents
from pagein.model.tier_notes import TierNote
from pagein.policy.layouts.tiered import TieredLayout
from pagein.policy.tiers.frozen_order import CacheTerms
from pagein.policy.tiers.stability_file import decode_stability, encode_stability
from pagein.policy.tiers.tier_fold import NO_TIERS, TierInput, Tiers, apply_note, difference, with_covered
from pagein.policy.tiers.tier_rules import TierRules, preset
from pagein.policy.tiers.tier_steps import TierStep
from pagein.policy.tiers.tier_values import HISTORY, SYMBOL, URL, RequestItem, TierState, symbol_key
from pagein.policy.tiers.tracker import Move
from pagein.ports import Layout
from pagein.providers.caches.cache_rules import UNKNOWN_MINIMUM
from pagein.providers.prices.price_lookup import newest_prices
from pagein.providers.tokens.counters import counter_for
from pagein.providers.validity import Api
from pagein.providers.wire import check_body, format_named
from pagein.providers.wire.laid_requests import render_prompt
from pagein.settings.sources import load_config
from pagein.workspace.stability_file import read_stability, write_stability

if TYPE_CHECKING:
    from pagein.engine.engine import Settings
    from pagein.engine.session import Session

_REMEMBERED: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class AssembledPrompt:
    """A prompt that is ready to be sent.

    request: the arguments of the SDK's call.
    prompt: its blocks, with their sizes and breakpoints.
    tiers: the tiers after it.
    moves: items that changed their tier.
    ripple: whether the set of active files and symbol entries changed.
    """

    request: dict[str, Any]
    prompt: LaidPrompt
    tiers: TierState
    moves: tuple[Move, ...]
    ripple: bool


def tiered(
    model: str,
    *,
    rules: str | TierRules = "pagein",
    session: "Session | None" = None,
    stability_file: str | Path | None = None,
    api: Api = "anthropic",
    max_tokens: int = 8192,
    settings: "Settings | None" = None,
) -> "TieredPrompts":
    """Begin to assemble prompts in the tiered layout.

    rules: a preset, `pagein` or `seed`, or choices of one's own.
    session: keeps the tiers in its journal, so that they survive a restart.
    stability_file: keeps the tiers in a file of the seed design, for choices with the promotion `ripple`.
    api: wire format of the requests.
    settings: give a preset `cache_min_tokens` and `cache_buffer_multiplier`; None for the configured settings, from files and
        the environment.

    Raises BadSetting for options that do not go together.
    """
    chosen = _configured(preset(rules), settings) if isinstance(rules, str) else rules
    if stability_file is not None and (session is not None or chosen.promotion != "ripple"):
        raise BadSetting("a stability file holds the tiers of preset 'seed', and only without a session")
    return TieredPrompts(model, chosen, _keeper(session, stability_file), api, max_tokens)


def _configured(rules: TierRules, settings: "Settings | None") -> TierRules:
    told = load_config().engine if settings is None else settings
    gating = {"cache_min_tokens": told.cache_min_tokens, "cache_buffer_multiplier": told.cache_buffer_multiplier}
    return replace(rules, **gating)  # type: ignore[arg-type]


class TieredPrompts:
    """Assembles the prompts of one conversation. Thread-safe.

    keeper: where the tiers are kept.
    """

    def __init__(self, model: str, rules: TierRules, keeper: "_Keeper", api: Api, max_tokens: int) -> None:
        self._model, self._rules, self._api, self._max_tokens = model, rules, api, max_tokens
        self._keeper = keeper
        self._layout: Layout[TierState] = TieredLayout(rules)
        self._lock = RLock()
        table, form = newest_prices(model), format_named(api).cache
        anywhere = not form.needs_breakpoints or (table is not None and table.cache.model != "breakpoints")
        self._terms = (
            CacheTerms(anywhere=anywhere) if table is None else CacheTerms(table.read, table.write_5m, anywhere)
        )
        self._min_prefix = UNKNOWN_MINIMUM if table is None else table.cache.min_prefix
        self._lasts = 300.0 if table is None else table.cache.ttl
        counter = counter_for(model)
        self._count = lru_cache(_REMEMBERED)(lambda text: float(ceil(counter.count(text))))
        self._last: float | None = None
        self._new = True

    @property
    def tiers(self) -> TierState:
        """The tiers after the last prompt."""
        return self._keeper.tiers().state

    def assemble(
        self,
        contents: PromptContents,
        *,
        modified: Collection[str] = (),
        references: Mapping[str, int] | None = None,
        at: float | None = None,
    ) -> AssembledPrompt:
        """Assemble the next prompt.

        modified: paths of files that the assistant edited since the last one.
        references: references to each file from others, by path, for the first prompt of the conversation.
        at: seconds since 1970, to know when the provider's cache has expired; None if unknown.

        Raises BadInput for contents of which no valid request can be made.
        """
        _check(contents)
        with self._lock:
            cold = at is not None and self._last is not None and at - self._last > self._lasts
            self._last = at
            request: list[AssembledPrompt] = []

            def decide(before: Tiers) -> tuple[TierNote, Tiers]:
                restarted = self._new and bool(before.state.items)
                given = TierInput(
                    tuple(self._request_items(contents)),
                    frozenset(contents.files) - contents.chosen,
                    frozenset(modified),
                    references or {},
                    restarted,
                    cold,
                )
                note = difference(before, given, self._rules, self._terms)
                after, step = apply_note(before, note)
                assembled = self._laid(contents, before, step)
                request[:] = [assembled]
                covered = assembled.prompt.covered
                return replace(note, covered=covered), replace(after, covered=covered)

            self._keeper.advance(decide)
            self._new = False
            return request[0]

    def _laid(self, contents: PromptContents, before: Tiers, step: TierStep) -> AssembledPrompt:
        facts = LayoutFacts(contents, self._count, self._min_prefix, before.covered)
        prompt = self._layout.lay_out(step.state, facts)
        body = render_prompt(prompt, self._api, self._model, max_tokens=self._max_tokens)
        for violation in check_body(body, self._api):
            raise BadInput(
                f"these contents make a request that the provider refuses ({violation.rule}): {violation.text}"
            )
        return AssembledPrompt(body, prompt, step.state, step.tracked.moves, step.ripple)

    def _request_items(self, contents: PromptContents) -> Iterator[RequestItem]:
        items = (
            *((path, text) for path, text in contents.files.items()),
            *((symbol_key(path), text) for path, text in contents.symbols.items()),
            *((URL + url, text) for url, text in contents.urls.items()),
        )
        for key, text in items:
            yield RequestItem(key, self._keeper.digest(text), self._count(text))
        for number, one in enumerate(contents.history):
            yield RequestItem(
                f"{HISTORY}{number}", self._keeper.digest(f"{one.role}:{one.text}"), self._count(one.text)
            )


def _check(contents: PromptContents) -> None:
    if not contents.prompt.strip():
        raise BadInput("the prompt is empty; give the user's words as PromptContents.prompt")
    for path in contents.files:
        if path.startswith((SYMBOL, HISTORY, URL)):
            raise BadInput(
                f"{path!r} is no path of a file: the beginnings {SYMBOL!r}, {HISTORY!r} and {URL!r} are taken"
            )
    if contents.history and contents.history[0].role != "user":
        raise BadInput("history[0] is the assistant's; a conversation begins with the user's words")


# --- where the tiers are kept ---

Decide: TypeAlias = Callable[[Tiers], tuple[TierNote, Tiers]]


class _Keeper(Protocol):
    def tiers(self) -> Tiers:
        """The tiers after the last prompt."""
        ...

    def digest(self, text: str) -> str:
        """What identifies a text."""
        ...

    def advance(self, decide: Decide) -> None:
        """Decide on the current tiers, and advance. An exception leaves the tiers unchanged."""
        ...


class _MemoryKeeper:
    def __init__(self, start: Tiers = NO_TIERS) -> None:
        self._tiers = start

    def tiers(self) -> Tiers:
        return self._tiers

    def digest(self, text: str) -> str:
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def advance(self, decide: Decide) -> None:
        self._tiers = decide(self._tiers)[1]


class _FileKeeper(_MemoryKeeper):
    def __init__(self, path: Path) -> None:
        super().__init__(Tiers(state=decode_stability(read_stability(path))))
        self._path = path

    def advance(self, decide: Decide) -> None:
        super().advance(decide)
        write_stability(self._path, encode_stability(self._tiers.state))


class _JournalKeeper:
    """Keeps the tiers of a branch as notes in a session's journal."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._known: tuple[EntryId | None, Tiers] = None, NO_TIERS

    def tiers(self) -> Tiers:
        """Fold the notes from the last known entry, or from the root if the session has moved elsewhere."""
        leaf, journal = self._session.leaf, self._session.journal
        known, tiers = self._known
        notes: list[TierNote] = []
        at = leaf
        while at is not None and at != known:
            entry = journal.entry(at)
            if isinstance(entry.body, NoteEntry) and isinstance(entry.body.note, TierNote):
                notes.append(entry.body.note)
            at = entry.parent
        tiers = NO_TIERS if at is None else tiers
        for note in reversed(notes):
            try:
                tiers = with_covered(apply_note(tiers, note)[0], note.covered)
            except BadSetting:  # of a version with other choices: the tiers begin anew behind it
                tiers = NO_TIERS
        self._known = leaf, tiers
        return tiers

    def digest(self, text: str) -> str:
        return self._session.fingerprint(text)

    def advance(self, decide: Decide) -> None:
        try:
            with self._session.turn():
                self._note(decide)
        except StoreError:
            self._note(decide)  # holds in memory at once; the next turn stores it

    def _note(self, decide: Decide) -> None:
        note, after = decide(self.tiers())
        self._known = self._session.note(note), after


def _keeper(session: "Session | None", stability_file: str | Path | None) -> _Keeper:
    if session is not None:
        return _JournalKeeper(session)
    return _MemoryKeeper() if stability_file is None else _FileKeeper(Path(stability_file))
