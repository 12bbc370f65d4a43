"""The settings of a single pi session: entries of the type `rlm-config` in pi, and the commands that write them.

Rules of this file
------------------
1. An entry carries only what was given, so that all else follows the settings. A later entry wins, key by key.
2. The keys are those of Pi-RLM, so entries of its sessions are understood. A key of ours stands in `KEYS`; a key whose purpose
   pagein serves otherwise stands in `REPLACED`, and says how.
3. A value that pagein cannot take counts for nothing in an entry, and is refused in a command. The other values hold.
"""

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from pagein.errors import BadInput, BadSetting

_Kind: TypeAlias = Literal["count", "percent", "text", "switch"]
_NUMBER: Final = re.compile(r"([0-9]{1,12})([KM]?)", re.IGNORECASE)
_FACTORS: Final = {"": 1, "K": 1_000, "M": 1_000_000}
_SWITCH: Final = {"on": True, "true": True, "off": False, "false": False}
_WHOLE: Final = 100


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A setting that a session may change.

    settings: the settings of pagein that get its value; a percentage becomes a share.
    """

    kind: _Kind
    settings: tuple[str, ...]


KEYS: Final[Mapping[str, ConfigKey]] = {
    "maxDepth": ConfigKey("count", ("child_depth",)),
    "maxConcurrency": ConfigKey("count", ("child_concurrency",)),
    "safetyValvePercent": ConfigKey("percent", ("valve", "valve_limit")),
    "manifest": ConfigKey("switch", ("manifest",)),
    "manifestBudget": ConfigKey("count", ("manifest_budget",)),
    "childTimeoutSec": ConfigKey("count", ("child_seconds",)),
    "operationTimeoutSec": ConfigKey("count", ("child_operation_seconds",)),
    "maxChildCalls": ConfigKey("count", ("child_calls",)),
    "childMaxTokens": ConfigKey("count", ("child_tokens",)),
    "childModel": ConfigKey("text", ("child_model",)),
    "maxIngestFiles": ConfigKey("count", ("ingest_files",)),
    "maxIngestBytes": ConfigKey("count", ("ingest_bytes",)),
}
_ENABLED: Final = "enabled"
REPLACED: Final[Mapping[str, str]] = {
    _ENABLED: "/rlm on and /rlm off",
    "tokenBudgetPercent": "results leave when that costs less than keeping them, not at a share of the window",
    "warmTurns": "the setting residency, which has an age for each kind of result",
    "retentionDays": "nothing is deleted by age: pagein gc gives up what no session needs",
}


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """The settings of a branch.

    enabled: whether paging is on; None if the branch does not say.
    values: by key of `KEYS`.
    prompt: text in place of the built-in words about paging in the system prompt; None if the branch does not say.
    """

    enabled: bool | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    prompt: str | None = None

    @property
    def settings(self) -> dict[str, object]:
        """The settings of pagein, as the session's settings demand."""
        return {
            setting: value / _WHOLE if KEYS[name].kind == "percent" and isinstance(value, int) else value
            for name, value in self.values.items()
            for setting in KEYS[name].settings
        }


NOTHING_SAID: Final = SessionConfig()


def read_config(data: Any, before: SessionConfig) -> SessionConfig:  # noqa: ANN401 - any JSON
    """Return the settings after an entry with the given data."""
    if not isinstance(data, dict):
        return before
    enabled, prompt = data.get("enabled"), data.get("prompt")
    told = {name: data[name] for name in KEYS if name in data and _fits(KEYS[name].kind, data[name])}
    return replace(
        before,
        enabled=enabled if isinstance(enabled, bool) else before.enabled,
        prompt=prompt if isinstance(prompt, str) else before.prompt,
        values={**before.values, **told} if told else before.values,
    )


def parse_config(words: str) -> dict[str, object]:
    """Return the values of `key=value` words. Numbers may end in K or M. Raises BadInput with the reason and the remedy."""
    found: dict[str, object] = {}
    for word in words.split():
        name, equals, value = word.partition("=")
        key = KEYS.get(name)
        if name in REPLACED:
            raise BadInput(f"{name} is replaced: {REPLACED[name]}")
        if key is None or not equals:
            raise BadInput(f"{word!r} sets nothing: give key=value, with a key of {', '.join(KEYS)}")
        found[name] = _parsed(name, key.kind, value)
    return found


def held_settings(
    wanted: Mapping[str, object], check: Callable[[Mapping[str, object]], object]
) -> Mapping[str, object]:
    """Return those of a session's settings that can hold, key by key. check: raises BadSetting for those that cannot."""
    held: dict[str, object] = {}
    for key in KEYS.values():
        more = {name: wanted[name] for name in key.settings if name in wanted}
        with contextlib.suppress(BadSetting):
            if more:
                check({**held, **more})
            held |= more
    return held


def config_table(config: SessionConfig, usual: Mapping[str, object], held: Mapping[str, object]) -> str:
    """Return a table of every key with value, source and pagein's own setting.

    usual: the values of pagein's settings without the session's own. held: the session's settings that hold.
    """
    rows = [("key", "value", "from", "setting of pagein")]
    for name, key in KEYS.items():
        own = name in config.values and held.keys() >= set(key.settings)
        value = config.values[name] if own else usual.get(key.settings[0])
        shown, source = _shown(key.kind, value), "session" if own else "settings"
        if name in config.values and not own:
            source += f" ({config.values[name]} is refused)"
        rows.append((name, str(shown), source, ", ".join(key.settings)))
    enabled = _shown("switch", usual.get("pi_paging") if config.enabled is None else config.enabled)
    origin = "settings" if config.enabled is None else "session"
    rows.append((_ENABLED, str(enabled), origin, f"pi_paging; {REPLACED[_ENABLED]}"))
    rows += [(name, "-", "replaced", instead) for name, instead in REPLACED.items() if name != _ENABLED]
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    return "\n".join(
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3])) for row in rows
    )


def _shown(kind: _Kind, value: object) -> object:
    if kind == "switch":
        return "on" if value is True else "off"
    if isinstance(value, float):
        return round(value * _WHOLE) if kind == "percent" else f"{value:g}"
    return value if value not in ("", None) else "-"


def _parsed(name: str, kind: _Kind, value: str) -> object:
    if kind == "text":
        return value
    if kind == "switch":
        if value.lower() not in _SWITCH:
            raise BadInput(f"{name} is on or off, not {value!r}")
        return _SWITCH[value.lower()]
    number = _NUMBER.fullmatch(value)
    if number is None:
        raise BadInput(f"{name} is a whole number, such as 50, 200K or 2M, not {value!r}")
    counted = int(number[1]) * _FACTORS[number[2].upper()]
    if not _fits(kind, counted):
        raise BadInput(f"{name} is {'1 to 100' if kind == 'percent' else '1 or more'}, not {value!r}")
    return counted


def _fits(kind: _Kind, value: object) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if kind == "switch":
        return isinstance(value, bool)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return is_number and 1 <= value <= (_WHOLE if kind == "percent" else 10**12)  # type: ignore[operator]
