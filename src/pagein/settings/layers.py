"""Merge layers of settings into one frozen value.

Pure: files come as text, the environment as a mapping.
"""

import difflib
import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from pagein import __version__
from pagein.engine.engine import Settings
from pagein.engine.recall.ingest import IngestLimits
from pagein.engine.recall.recall_resources import Bounds
from pagein.errors import BadSetting
from pagein.gateway.settings import GatewaySettings
from pagein.model.read_caps import ReadCaps
from pagein.policy.clients.profiles import OTHER, PROFILES
from pagein.policy.delegation.limits import DelegationLimits, DelegationSettings
from pagein.policy.eviction.overflow import Valve
from pagein.policy.eviction.presets import PRESETS
from pagein.policy.guards.limits import GuardSettings
from pagein.policy.pools.pool_values import PoolRules
from pagein.policy.reads.read_request import ReadingSettings
from pagein.policy.stubs.previews import Previews
from pagein.providers.vendors import VENDORS
from pagein.settings.keys import AGES, GATEWAY, KEYS

PAGE: Final = "docs/reference/settings.md"
DEFAULT: Final = "default"
_OF_THE_PLACE: Final = ("host", "port", "store")
GIVEN: Final = "given"
ENVIRONMENT: Final = "environment"
OF_PRESET: Final = ("thinking", "arguments", "floor_paging", "shown_once", *AGES)
"""The settings whose defaults the preset of `residency` sets."""


@dataclass(frozen=True, slots=True)
class SettingsLayer:
    """The values from one source.

    name: the source, for people. values: by key.
    """

    name: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting with its origin.

    engine, gateway, delegation: their settings.
    store: address or file of the store; None for the workspace's own.
    values: the value of every key. origins: the source of each value.
    """

    engine: Settings = field(default_factory=Settings)
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    delegation: DelegationSettings = field(default_factory=DelegationSettings)
    store: str | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def addresses(self) -> dict[str, str]:
        """The address for requests to each vendor, by the vendor's name."""
        return {one.name: str(self.values[one.name]) for one in VENDORS}

    @property
    def fingerprint(self) -> str:
        """Return a hash of pagein's version and every setting that changes a gateway's behaviour.

        Left out are its own address and its store.
        """
        told = sorted((name, repr(value)) for name, value in self.values.items() if name not in _OF_THE_PLACE)
        return hashlib.sha256(repr([__version__, *told]).encode()).hexdigest()


def of_file(name: str, text: str, *, own: bool) -> SettingsLayer:
    """Parse a settings file.

    own: whether the file is the user's; else it came with a workspace.
    Raises BadSetting with file, key and remedy.
    """
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise BadSetting(f"{name}: is not TOML: {problem}") from problem
    return SettingsLayer(name, {key: _of_file(name, key, value, own=own) for key, value in table.items()})


def _of_file(name: str, key: str, value: object, *, own: bool) -> object:
    known = KEYS.get(key)
    if known is None:
        near = difflib.get_close_matches(key, KEYS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"take it out; {PAGE} has all keys"
        raise BadSetting(f"{name}: {key!r} is no setting; {hint}")
    if known.own and not own:
        raise BadSetting(
            f"{name}: {key!r} cannot be set by a workspace, which may be somebody else's; set it in your own file, by "
            f"{known.variable} or by an option ({PAGE})"
        )
    try:
        return known.parse_value(value)
    except (TypeError, ValueError):
        raise BadSetting(f"{name}: {key!r} takes {known.takes}, not {value!r}") from None


def of_environment(environment: Mapping[str, str]) -> SettingsLayer:
    """Read the `PAGEIN_*` variables; an empty variable counts as absent.

    Raises BadSetting with variable and remedy.
    """
    values: dict[str, object] = {}
    for key in KEYS.values():
        told = environment.get(key.variable, "").strip()
        if told:
            try:
                values[key.name] = key.parse_text(told)
            except (TypeError, ValueError):
                raise BadSetting(f"{key.variable}: takes {key.takes}, not {told!r}") from None
    return SettingsLayer(ENVIRONMENT, values)


def merge_layers(layers: Iterable[SettingsLayer]) -> Config:
    """Merge the layers over the defaults; later layers win.

    Raises BadSetting for values that contradict each other.
    """
    values = {key.name: key.default for key in KEYS.values()}
    origins = dict.fromkeys(KEYS, DEFAULT)
    for layer in layers:
        values |= layer.values
        origins |= dict.fromkeys(layer.values, layer.name)
    chosen = PRESETS[values["residency"]]  # type: ignore[index]
    preset = chosen.residency
    of_preset = {
        "thinking": preset.thinking,
        "arguments": chosen.arguments,
        "floor_paging": chosen.floor_paging,
        "shown_once": preset.shown_once,
        **{name: preset.rules.ages[name].calls for name in AGES},
    }  # the keys of OF_PRESET
    values |= {name: value for name, value in of_preset.items() if origins[name] == DEFAULT}
    try:
        _check_layout(values)
        store = values["store"]
        gateway = GatewaySettings(**{key.name: values[key.name] for key in GATEWAY})  # type: ignore[arg-type]
        return Config(_engine(values), gateway, _delegation(values), str(store) if store else None, values, origins)
    except BadSetting as problem:
        raise BadSetting(f"{problem}{_places(str(problem), origins)}") from problem


def _places(problem: str, origins: Mapping[str, str]) -> str:
    """Return in brackets where the settings of a problem were set; "" if all are from the command line.

    These are the settings that the problem names, or all of them if it names none.
    """
    set_by = {name: where for name, where in origins.items() if where != DEFAULT}
    named = set(re.findall(r"\w+", problem)) & set_by.keys() or set_by.keys()
    told = [f"{name} in {where}" for name, where in set_by.items() if name in named and where != GIVEN]
    return f" (set: {', '.join(told)})" if told else ""


def _delegation(values: Mapping[str, Any]) -> DelegationSettings:
    limits = DelegationLimits(
        values["child_depth"],
        values["child_calls"],
        values["child_concurrency"],
        values["child_seconds"],
        values["child_operation_seconds"],
        values["child_tokens"],
        values["child_turns"],
        values["child_usd"],
        values["child_unpriced_tokens"],
        values["child_confirm_above"],
    )
    return DelegationSettings(
        limits,
        values["child_model"],
        values["child_deep_model"],
        values["delegation_prompt"],
        values["child_prompt"],
        values["child_memo"],
    )


def _check_layout(values: Mapping[str, Any]) -> None:
    """Raise BadSetting for a layout that no request could have."""
    unknown = [one for one in values["pooled_clients"] if one not in PROFILES]
    if unknown:
        known = ", ".join(sorted(name for name in PROFILES if name != OTHER.name))
        raise BadSetting(f"pooled_clients: {unknown[0]!r} is no known client; there are {known}")
    if values["layout"] == "pooled" and not values["recall"]:
        raise BadSetting("layout = pooled needs recall = true, because the model calls the tools for pools")


_AS_NAMED: Final = ("min_tokens", "thinking")
_READING: Final = tuple(name.removeprefix("read_") for name in KEYS if name.startswith("read_"))


def _valve(values: Mapping[str, Any]) -> Valve:
    return Valve(values["valve"], values["valve_low"], values["window"], values["valve_pastes"], values["valve_limit"])


def _engine(values: Mapping[str, Any]) -> Settings:
    preset = PRESETS[values["residency"]]
    previews = Previews(values["previews_from"], values["previews_show"]) if values["previews_from"] else None
    names = {one.name for one in fields(Settings)}
    own = {
        name: value
        for name, value in values.items()
        if name in names - {"residency", "valve", "excluded", "reading", "recall", "ingest", "guards", "pools"}
    }
    return replace(
        Settings(**own),
        residency=replace(
            preset.residency,
            rules=preset.residency.rules.with_ages({name: values[name] for name in AGES}),
            previews=previews,
            arguments=preset.masked_in(values["arguments"]),
            shown_once=values["shown_once"] or None,
            **{name: values[name] for name in _AS_NAMED},
        ),
        reading=ReadingSettings(**{name: values[f"read_{name}"] for name in _READING}),
        recall=Bounds(
            ReadCaps(values["recall_lines"], values["recall_bytes"]),
            values["search_matches"],
            values["search_per_object"],
            values["search_seconds"],
        ),
        ingest=IngestLimits(values["ingest_files"], values["ingest_bytes"]),
        guards=GuardSettings(values["guard_profile"], values["guard_relevance"], values["guard_folders"]),
        pools=PoolRules(values["pool_calls"], values["pool_turns"], values["pool_by_hand"]),
        valve=_valve(values) if values["valve"] else Valve(0.0, 0.0),
        excluded=(*Settings().excluded, *values["excluded"]),
    )
