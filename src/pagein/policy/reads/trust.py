"""The transition table of trust: the lines that each kind of answer makes known, and the conditions.

docs/reference/trust.md prints it. A pair of mode and scope without a row changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead, Mode
from pagein.model.spans import NO_LINES, Spans

Scope: TypeAlias = Literal["full", "range"]
Proof: TypeAlias = Literal["emitted", "base in place", "base lines", "base whole", "copies", "nothing"]


@dataclass(frozen=True, slots=True)
class TrustRule:
    """One row of the table.

    proof: the basis of the answer. same: the served version must be the base.
    """

    proof: Proof
    same: bool = False

    @property
    def anchors(self) -> bool:
        """Whether the answer can establish knowledge from nothing."""
        return self.proof == "emitted"


_IGNORED: Final = TrustRule("nothing")

TRANSITIONS: Final[Mapping[tuple[int, Mode, Scope], TrustRule]] = {
    (1, "full", "full"): TrustRule("emitted"),
    (1, "full", "range"): TrustRule("emitted"),
    (1, "baseline_fallback", "full"): TrustRule("emitted"),
    (1, "baseline_fallback", "range"): TrustRule("emitted"),
    (1, "unchanged", "full"): TrustRule("base lines", same=True),
    (1, "unchanged_range", "range"): TrustRule("base in place"),
    (1, "diff", "full"): TrustRule("base whole"),
    (2, "unchanged", "full"): TrustRule("copies"),
    (2, "unchanged_range", "range"): TrustRule("copies"),
    (2, "moved", "full"): TrustRule("copies"),
    (2, "moved", "range"): TrustRule("copies"),
    (2, "range_diff", "range"): TrustRule("copies"),
    (2, "partly_known", "full"): TrustRule("copies"),
    (2, "partly_known", "range"): TrustRule("copies"),
}

_GUARDS: Final[Mapping[Proof, str]] = {
    "emitted": "always",
    "base in place": "some requested lines of `baseHash` are the text that was shown last under their numbers",
    "base lines": "the model believes some requested lines to be as in `baseHash`",
    "base whole": "the model believes the whole file to be `baseHash`",
    "copies": "some lines are emitted, or are copies of lines that are known in their version",
    "nothing": "never",
}
_EFFECTS: Final[Mapping[Proof, str]] = {
    "emitted": "the emitted lines of `servedHash`",
    "base in place": "these lines of `servedHash`",
    "base lines": "these lines of `servedHash`",
    "base whole": "all lines of `servedHash`",
    "copies": "these lines of `servedHash`",
    "nothing": "none",
}
_OTHERS: Final = (
    ("any other pair of mode and scope, or a malformed record", "never", "none"),
    ("the model's own `write` succeeded", "always", "all lines of the new version"),
    (
        "the model's own `edit` succeeded",
        "always",
        (
            "the written text, in runs of at least 5 lines, without line numbers; if the version before is known exactly, also "
            "its known lines that the edit did not touch, under the numbers of their showing"
        ),
    ),
    ("`invalidate` full", "always", "none: the path is forgotten"),
    (
        "`invalidate` range",
        "always",
        (
            "none: these line numbers are forgotten in every version; the next answer shows them as text, and so does the "
            "next answer to a range request"
        ),
    ),
    ("compaction", "always", "none: everything is forgotten"),
)


def rule_of(event: FileRead) -> TrustRule:
    """Return the row for this answer."""
    return TRANSITIONS.get((event.v, event.mode, "full" if event.whole else "range"), _IGNORED)


def trusted_lines(event: FileRead, known: Mapping[ContentHash, Spans], lines: Spans, *, whole: bool) -> Spans:
    """Return the lines of the served version that the answer makes known.

    known: known lines of each version that `event.copies` names.
    lines: lines of `event.base` that the answer may depend on.
    whole: whether the model believes the whole file equal to `event.base`.
    """
    rule = rule_of(event)
    asked = Spans.of((event.first, event.last))
    if rule.same and event.base != event.version:
        return NO_LINES
    match rule.proof:
        case "emitted":
            return (event.emitted or NO_LINES).clamp(1, event.total)
        case "base in place" | "base lines":
            return lines.intersect(asked)
        case "base whole":
            return asked if whole else NO_LINES
        case "copies":
            lines = event.emitted or NO_LINES
            for copy in event.copies:
                there = Spans.of((copy.at, copy.at + copy.count - 1))
                lines = lines.unite(known.get(copy.base, NO_LINES).shift(copy.at - copy.first).intersect(there))
            return lines.clamp(1, event.total)
        case "nothing":
            return NO_LINES


def trust_table() -> str:
    """Return the table as Markdown, for docs/reference/trust.md: events with the same guard and effect share a row."""
    rows = ["| event | guard | lines that become known |", "|---|---|---|"]
    events: dict[tuple[str, str], list[str]] = {}
    for (version, mode, scope), rule in TRANSITIONS.items():
        guard = _GUARDS[rule.proof] + (", and `baseHash` equals `servedHash`" if rule.same else "")
        events.setdefault((guard, _EFFECTS[rule.proof]), []).append(f"v{version} `{mode}` {scope}")
    rows.extend(f"| {', '.join(alike)} | {guard} | {effect} |" for (guard, effect), alike in events.items())
    rows.extend(f"| {event} | {guard} | {effect} |" for event, guard, effect in _OTHERS)
    return "\n".join(rows) + "\n"
