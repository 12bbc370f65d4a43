"""Ablation: the layers of pagein's policy, and pagein without some of them, to measure the worth of each layer.

Each entry of `LAYERS` describes one layer and removes it from the engine's settings.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from pagein.engine.engine import Settings
from pagein.errors import BadSetting
from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.eviction.presets import DEFAULT, PRESETS, Preset
from pagein.policy.eviction.residency import Residency
from pagein.policy.eviction.residency_rules import USUAL

FULL: Final = "pagein"
"""The whole planner with the user's settings: which results are evicted, when, and which cache TTL each request asks for."""
QUIET: Final = "pagein-quiet"
"""The planner without keep-alive requests: the default of the gateway."""
MASKING: Final = "arguments"
"""The masking layer, part of the presets `balanced` and `thrifty` only. Without it: the settings of a host that cannot hold
a call back."""
THINKING: Final = "thinking"
"""The layer that removes old thinking, part of the presets `balanced` and `thrifty` only, for models that could keep
their thinking."""
_QUIETLY: Final = "-quiet"
_OTHERS: Final[Mapping[str, Preset]] = {f"{FULL}-{name}": name for name in PRESETS if name != DEFAULT}
PRESET_POLICIES: Final = tuple(_OTHERS)
"""pagein with the other presets, with arguments masked."""
VARIANTS: Final = (QUIET, *(name + suffix for name in _OTHERS for suffix in ("", _QUIETLY)))
"""pagein with other settings than the defaults, each preset also without keep-alive requests."""
_WITHOUT: Final = "without-"
_NEVER: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """The settings by which pagein decides in a replay.

    frontier_mark: whether a cache breakpoint is spent on the frontier.
    lifetimes: whether cache TTLs are chosen.
    borrows: whether earlier sessions of the store have saved what one session may expose. Only with chosen TTLs.
    keeps_alive: whether pauses are bridged by keep-alive requests. Only with chosen TTLs.
    in_loops: whether old results may be evicted between a tool's result and the next call.
    """

    settings: Settings
    frontier_mark: bool = True
    lifetimes: bool = True
    borrows: bool = True
    keeps_alive: bool = True
    in_loops: bool = True


@dataclass(frozen=True, slots=True)
class PolicyLayer:
    """One layer of the policy.

    does: description of the layer, printed for users.
    without: function from planner settings to the same settings without this layer.
    """

    does: str
    without: Callable[[PlannerSettings], PlannerSettings]


def _residency(change: Callable[[Residency], Residency]) -> Callable[[PlannerSettings], PlannerSettings]:
    def without(planning: PlannerSettings) -> PlannerSettings:
        settings = planning.settings
        return replace(planning, settings=replace(settings, residency=change(settings.residency)))

    return without


def _economics(change: Callable[[Economics], Economics]) -> Callable[[PlannerSettings], PlannerSettings]:
    def without(residency: Residency) -> Residency:
        prices = residency.economics
        return residency if prices is None else replace(residency, economics=change(prices))

    return _residency(without)


def _thoughtless(residency: Residency) -> Residency:
    return replace(residency, thinking="leaves")


def _preset(name: Preset) -> Callable[[PlannerSettings], PlannerSettings]:
    return _residency(PRESETS[name].with_masks.with_prices_of)


def _without_rules(name: str) -> Callable[[PlannerSettings], PlannerSettings]:
    return _residency(lambda residency: replace(residency, rules=residency.rules.without_layer(name)))


_RULES: Final = {
    row.layer.name: PolicyLayer(row.layer.does, _without_rules(row.layer.name))
    for row in USUAL.rows
    if row.layer is not None
}
"""The layers that rows of the residency table name."""

LAYERS: Final[Mapping[str, PolicyLayer]] = {
    "birth": PolicyLayer(
        "big outputs enter as previews",
        _residency(lambda residency: replace(residency, previews=None)),
    ),
    "shown-once": PolicyLayer(
        "big outputs are shown once, behind the last cache breakpoint",
        _residency(lambda residency: replace(residency, shown_once=None)),
    ),
    "rereads": PolicyLayer(
        "what a client's tools read again enters as a marker or a diff",
        lambda planning: replace(planning, settings=replace(planning.settings, rereads=False)),
    ),
    "epochs": PolicyLayer(
        "old results leave in batches",
        _residency(lambda residency: replace(residency, economics=None, rules=residency.rules.without_ages())),
    ),
    **_RULES,
    "marks": PolicyLayer(
        "a cache mark stands where the next batch would begin",
        lambda planning: replace(planning, frontier_mark=False),
    ),
    "bankroll": PolicyLayer(
        "a rewrite costs no more than what was saved so far and 2 % of the bill",
        _economics(lambda prices: replace(prices, share=float(_NEVER))),
    ),
    "cold": PolicyLayer(
        "a pause beyond the cache's lifetime makes a rewrite free",
        _economics(lambda prices: replace(prices, lifetime=float("inf"))),
    ),
    "user-turn": PolicyLayer(
        "a fresh user turn makes a rewrite cheap",
        _economics(lambda prices: replace(prices, user_turns=False)),
    ),
    "tool-loops": PolicyLayer(
        "old results may leave between a tool's result and the next call, and thinking stays; not where a model binds its thinking",
        lambda planning: _residency(_thoughtless)(replace(planning, in_loops=False)),
    ),
    "keep-alive": PolicyLayer(
        "pauses are bridged by keep-alive requests",
        lambda planning: replace(planning, keeps_alive=False),
    ),
    "lifetimes": PolicyLayer(
        "the cache's lifetimes are chosen; without them, no pause is bridged",
        lambda planning: replace(planning, lifetimes=False),
    ),
    "reserve": PolicyLayer(
        "earlier sessions of the store have saved what a session may expose; without it, as in a new store",
        lambda planning: replace(planning, borrows=False),
    ),
    MASKING: PolicyLayer(
        "of `pagein-balanced` and `pagein-thrifty`: text of files leaves the arguments of old calls",
        _residency(lambda residency: replace(residency, arguments=None)),
    ),
    THINKING: PolicyLayer(
        "of `pagein-balanced` and `pagein-thrifty`: an epoch takes the thinking of finished turns behind its frontier along",
        _residency(lambda residency: replace(residency, thinking="kept")),
    ),
}
"""The layers by name, as `--without` takes them."""


def ablation(names: Iterable[str], preset: Preset = DEFAULT) -> str:
    """Return the name of pagein's policy without these layers. Raise BadSetting for an unknown layer.

    preset: the preset whose layers they are. Layers that the default preset lacks are those of `thrifty`.
    """
    missing = [_check_layer(name.strip()) for name in names]
    of_preset = "" if preset == DEFAULT else f"{FULL}-{preset}-"
    return of_preset + _WITHOUT + "+".join(name for name in LAYERS if name in missing)


def layers_missing(policy: str) -> tuple[str, ...] | None:
    """Return the layers missing from a policy of this name: an empty tuple for pagein itself, None for another policy.

    Raises BadSetting for an unknown layer in the name.
    """
    if policy == FULL or policy in VARIANTS:
        return ()
    of_preset, without, names = policy.partition(_WITHOUT)
    if not without or of_preset.removesuffix("-") not in ("", *_OTHERS):
        return None
    return tuple(map(_check_layer, names.split("+")))


def planner_settings(policy: str, settings: Settings) -> PlannerSettings:
    """Return the planner settings of the policy with this name, based on common settings."""
    missing = layers_missing(policy) or ()
    preset = _OTHERS.get(policy.partition(_WITHOUT)[0].removesuffix("-").removesuffix(_QUIETLY))
    if preset is None and (MASKING in missing or THINKING in missing):
        preset = "thrifty"
    planning = PlannerSettings(settings)
    if preset is not None:
        planning = _preset(preset)(planning)
    if policy in VARIANTS and policy.endswith(_QUIETLY):
        planning = LAYERS["keep-alive"].without(planning)
    for name in missing:
        planning = LAYERS[name].without(planning)
    return planning


def chooses_lifetimes(policy: str) -> bool:
    """Return whether the policy of this name chooses cache TTLs."""
    return planner_settings(policy, Settings()).lifetimes


def _check_layer(name: str) -> str:
    if name in LAYERS:
        return name
    near = get_close_matches(name, LAYERS, 1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    raise BadSetting(f"there is no layer {name!r}{meant}; the layers are {', '.join(LAYERS)}")
