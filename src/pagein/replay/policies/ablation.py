"""The layers of pagein's policy, and pagein without some of them: what each is worth (ablation).

One line of `LAYERS` is one layer: what it does, and the engine's terms without it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from pagein.engine.engine import Settings
from pagein.errors import BadSetting
from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.eviction.argument_masks import SOON
from pagein.policy.eviction.residency import THRIFTY, Residency

FULL: Final = "pagein"
"""The whole planner: what leaves, when, and how long the cache is asked to keep what is sent."""
QUIET: Final = "pagein-quiet"
"""The same without lifetimes and keep-alive requests of its own: what the gateway does unless told otherwise."""
THRIFTY_NAME: Final = "pagein-thrifty"
"""The whole planner with settings that put the bill before the quotes (`policy.eviction.residency.THRIFTY`), masking arguments."""
MASKING: Final = "arguments"
"""The layer that only the thrifty settings have: without it they stand as a host has them that cannot hold a call back."""
THINKING: Final = "thinking"
"""The same for thinking that a model could keep."""
VARIANTS: Final = (QUIET, THRIFTY_NAME)
"""pagein in other settings than its own."""
_PREFIX: Final = "without-"
_NEVER: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """What pagein decides by in a replay. frontier_mark: whether a cache mark is spent on the first block that may change next.

    keeps_alive: whether it chooses lifetimes and bridges pauses. in_loops: whether old results may leave while tools answer.
    """

    settings: Settings
    frontier_mark: bool = True
    keeps_alive: bool = True
    in_loops: bool = True


@dataclass(frozen=True, slots=True)
class PolicyLayer:
    """One layer: what it does, in words, and the planning without it."""

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


def _thrifty(usual: Residency) -> Residency:
    return replace(_thoughtless(THRIFTY.with_prices_of(usual)), arguments=SOON)


LAYERS: Final[Mapping[str, PolicyLayer]] = {
    "birth": PolicyLayer(
        "big outputs enter as previews",
        _residency(lambda residency: replace(residency, previews=None)),
    ),
    "rereads": PolicyLayer(
        "what a client's tools read again enters as a marker or a diff",
        lambda planning: replace(planning, settings=replace(planning.settings, rereads=False)),
    ),
    "epochs": PolicyLayer(
        "old results leave in batches",
        _residency(lambda residency: replace(residency, economics=None, batch_tokens=_NEVER)),
    ),
    "files": PolicyLayer(
        "a read of a file stays for as long as the file is worked on",
        _residency(lambda residency: replace(residency, files=None)),
    ),
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
        "the cache's lifetimes are chosen, and pauses bridged by keep-alive requests",
        lambda planning: replace(planning, keeps_alive=False),
    ),
    MASKING: PolicyLayer(
        "of `pagein-thrifty`: text of files leaves the arguments of old calls",
        _residency(lambda residency: replace(residency, arguments=None)),
    ),
    THINKING: PolicyLayer(
        "of `pagein-thrifty`: an epoch takes the thinking of finished turns behind its frontier along",
        _residency(lambda residency: replace(residency, thinking="kept")),
    ),
}
"""By the name that `--without` takes."""


def ablation(names: Iterable[str]) -> str:
    """The name of the policy without these layers. Raises BadSetting for a layer that there is none of."""
    missing = [_check_layer(name.strip()) for name in names]
    return _PREFIX + "+".join(name for name in LAYERS if name in missing)


def layers_missing(policy: str) -> tuple[str, ...] | None:
    """The layers that a policy of this name lacks, none for pagein itself; None for a policy that is not pagein's.

    Raises BadSetting where it names a layer that there is none of.
    """
    if policy == FULL or policy in VARIANTS:
        return ()
    if not policy.startswith(_PREFIX):
        return None
    return tuple(map(_check_layer, policy.removeprefix(_PREFIX).split("+")))


def planner_settings(policy: str, settings: Settings) -> PlannerSettings:
    """How the policy of this name plans, by settings that hold for all of it."""
    planning = PlannerSettings(settings)
    if policy == QUIET:
        return LAYERS["keep-alive"].without(planning)
    missing = layers_missing(policy) or ()
    if policy == THRIFTY_NAME or MASKING in missing or THINKING in missing:
        planning = _residency(_thrifty)(planning)
    for name in missing:
        planning = LAYERS[name].without(planning)
    return planning


def keeps_alive(policy: str) -> bool:
    """Whether the policy of this name chooses lifetimes and bridges pauses."""
    return planner_settings(policy, Settings()).keeps_alive


def _check_layer(name: str) -> str:
    if name in LAYERS:
        return name
    near = get_close_matches(name, LAYERS, 1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    raise BadSetting(f"there is no layer {name!r}{meant}; the layers are {', '.join(LAYERS)}")
