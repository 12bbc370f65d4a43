"""What each preset of residency comes to on the recorded sessions of docs/reference/residency-results.md, through the gateway.

Apart from the presets, because `pagein replay --help` prints these figures without loading the settings.
"""

from collections.abc import Mapping
from typing import Final

from pagein.policy.eviction.residency_rules import Preset

PRESET_FIGURES: Final[Mapping[Preset, str]] = {
    "careful": "18 % saved, 26 of 3,032 quotes lost",
    "balanced": "20 % saved, 30 quotes lost; where a hook guards arguments 23 %, 49",
    "thrifty": "21 % saved, 158 quotes lost; where a hook guards arguments 25 %, 205",
}
