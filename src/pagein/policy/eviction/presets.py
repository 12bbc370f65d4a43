"""The presets of residency: three compromises between few lost quotes and a low bill.

A preset sets defaults: the ages of the residency table, which arguments are masked and where, and whether old thinking leaves.
A setting that the user gives outvotes its preset.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args

from pagein.policy.economics.tool_deferral import FloorPaging
from pagein.policy.eviction.argument_masks import AT_ONCE, CAREFUL, SOON, ArgumentRules
from pagein.policy.eviction.preset_figures import PRESET_FIGURES
from pagein.policy.eviction.residency import PRICED, Residency
from pagein.policy.eviction.residency_rules import USUAL, Preset

__all__ = ["DEFAULT", "MASKING", "OLDER_NAMES", "PRESETS", "Masking", "Preset", "ResidencyPreset"]

Masking: TypeAlias = Literal["never", "guarded", "always"]
"""The sessions in which arguments are masked: none, those whose agent reported a guarding hook, or all."""
MASKING: Final[tuple[Masking, ...]] = get_args(Masking)


@dataclass(frozen=True, slots=True)
class ResidencyPreset:
    """A named choice of residency settings.

    says: the choice, for users.
    residency: the settings. They mask no arguments, because only some hosts can stop a call that quotes a mask.
    masks: which arguments may be masked where the host can stop such a call.
    arguments: in which sessions they are masked, as the setting `arguments` says.
    floor_paging: when unused tools are deferred.
    """

    name: Preset
    says: str
    residency: Residency
    masks: ArgumentRules
    arguments: Masking = "never"
    floor_paging: FloorPaging = "never"

    @property
    def measured(self) -> str:
        """The preset's figures on the recorded sessions, in words."""
        return PRESET_FIGURES[self.name]

    def masked_in(self, sessions: Masking) -> ArgumentRules | None:
        """Return the rules for masks; None if no session has masks."""
        return None if sessions == "never" else replace(self.masks, guarded=sessions == "guarded")

    @property
    def with_masks(self) -> Residency:
        """The preset's residency for hosts that block a call with a mask in its text."""
        return replace(self.residency, arguments=self.masks)


PRESETS: Final[Mapping[Preset, ResidencyPreset]] = {
    one.name: one
    for one in (
        ResidencyPreset("careful", "fewest lost quotes", PRICED, CAREFUL),
        ResidencyPreset(
            "balanced",
            "file reads leave sooner, and so do the thinking of finished turns and, where a hook guards them, arguments",
            replace(PRICED, rules=USUAL.at("balanced"), thinking="leaves"),
            SOON,
            "guarded",
        ),
        ResidencyPreset(
            "thrifty",
            "lowest bill: reads and outputs leave sooner still, so more edits must recall the text that they quote, and unused tools wait for a search",
            replace(PRICED, rules=USUAL.at("thrifty"), thinking="leaves", shown_once=500),
            AT_ONCE,
            "guarded",
            "cold",
        ),
    )
}
"""The presets by name, the most careful first."""

DEFAULT: Final[Preset] = "careful"

OLDER_NAMES: Final[Mapping[str, Preset]] = {"usual": "careful"}
"""Names by which earlier versions knew a preset."""
