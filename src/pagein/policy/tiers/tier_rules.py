"""The choices behind stability tiers, each by its name: after the seed design, or corrected.

`PRESETS` has two points among them. `seed` is the design to the letter. `pagein` keeps what the provider has cached:
an item moves only into what is rewritten anyway, or where the price of moving it is earned back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import inf
from typing import Final, Literal, TypeAlias

from pagein.errors import BadSetting

Promotion: TypeAlias = Literal["ripple", "rewritten"]
Leaving: TypeAlias = Literal["any", "aged"]
Placeholder: TypeAlias = Literal["differs", "matches"]
HistoryAge: TypeAlias = Literal["aged", "at once"]
HistoryPlace: TypeAlias = Literal["tiers", "conversation"]
Absent: TypeAlias = Literal["stays", "leaves"]
Seeding: TypeAlias = Literal["count", "tokens"]
HistoryForm: TypeAlias = Literal["markdown", "messages"]
Marks: TypeAlias = Literal["tiers", "provider"]
Tail: TypeAlias = Literal["files first", "history first"]
Blocks: TypeAlias = Literal["tier", "item"]
Inside: TypeAlias = Literal["n", "entry"]

MIN_TOKENS: Final = 1024
BUFFER: Final = 1.5


@dataclass(frozen=True, slots=True)
class TierRules:
    """The choices of a preset. Each says what it decides in `CHOICES`.

    cache_min_tokens: smallest cached block of the provider, in tokens (`cacheMinTokens`); 0 for no gating: promotions
        ask for no tokens, and history never enters a tier.
    cache_buffer_multiplier: margin on it (`cacheBufferMultiplier`).

    Raises BadSetting for choices that do not go together.
    """

    promotion: Promotion = "ripple"
    leaving: Leaving = "any"
    placeholder: Placeholder = "differs"
    history_age: HistoryAge = "aged"
    history_place: HistoryPlace = "tiers"
    absent: Absent = "stays"
    seeding: Seeding = "count"
    anchors: bool = True
    history_form: HistoryForm = "markdown"
    marks: Marks = "tiers"
    tail: Tail = "files first"
    blocks: Blocks = "tier"
    inside: Inside = "n"
    cache_min_tokens: int = MIN_TOKENS
    cache_buffer_multiplier: float = BUFFER

    def __post_init__(self) -> None:
        if self.cache_min_tokens < 0 or not 0 <= self.cache_buffer_multiplier < inf:
            raise BadSetting("cache_min_tokens and cache_buffer_multiplier of tiers must be 0 or more, and finite")
        needed = {"history_place": "conversation", "absent": "leaves", "blocks": "item", "inside": "entry"}
        needed |= {"marks": "provider", "tail": "history first"}
        for name, value in needed.items():
            if self.promotion == "rewritten" and getattr(self, name) != value:
                raise BadSetting(f"tiers with promotion='rewritten' need {name}={value!r}: cached bytes must not move")
        if self.blocks == "item" and self.history_place == "tiers" and self.history_form == "markdown":
            raise BadSetting("tiers with blocks='item' need history_form='messages' or history_place='conversation'")

    @property
    def target_tokens(self) -> float:
        """The wanted size of a cached block in tokens; 0 for no gating."""
        return self.cache_min_tokens * self.cache_buffer_multiplier


@dataclass(frozen=True, slots=True)
class TierChoice:
    """A choice in two forms, after the seed design and corrected, with the reason.

    seed, corrected: what holds in the seed design, and with the correction.
    why: what went wrong.
    """

    name: str
    seed: str
    corrected: str
    why: str


CHOICES: Final = (
    TierChoice(
        "promotion",
        "`ripple`: whatever enters a tier moves those in it",
        "`rewritten`: items move only behind the first changed block, or when it pays",
        "a promotion into a stable tier rewrites it, and all behind it",
    ),
    TierChoice(
        "leaving",
        "`any` item that leaves the active list enters L3",
        "`aged`: only with N of 3 or more; a younger one is forgotten",
        "a file that was selected for one request is cached",
    ),
    TierChoice(
        "placeholder",
        "`differs`: the first real content of an item that was placed by its references counts as a change",
        "`matches`: it is no change",
        "the first request undoes the whole initialisation",
    ),
    TierChoice(
        "history_age",
        "`aged`: a message may enter a tier with N of 3",
        "`at once`",
        "a message never changes, so its age says nothing",
    ),
    TierChoice(
        "history_place",
        "`tiers`: old messages move into tiers",
        "`conversation`: messages stay where they are, cached behind the tiers",
        "each message that moves rewrites a tier and all behind it",
    ),
    TierChoice(
        "absent",
        "`stays`: what the caller no longer gives stays tracked in its tier",
        "`leaves`: it is removed, and its tier counts as changed",
        "deleted files stay in cached tiers",
    ),
    TierChoice(
        "seeding",
        "`count`: 20 %, 30 % and 50 % of the items enter L1, L2 and L3",
        "`tokens`: the same shares of their tokens",
        "equal counts put most tokens into one tier",
    ),
    TierChoice(
        "anchors",
        "`True`: a tier keeps items until it is as large as the provider's minimum",
        "`False`",
        "the minimum holds for the whole prefix, not for each block",
    ),
    TierChoice(
        "history_form",
        "`markdown` in a tier's block",
        "`messages`: pairs of user and assistant",
        "the conversation is harder to follow, and its bytes change when it moves",
    ),
    TierChoice(
        "marks",
        "`tiers`: one cache breakpoint on each tier",
        "`provider`: at the end of the conversation, at the last place that can be read, in front of what may change",
        "four breakpoints on tiers leave none for the conversation",
    ),
    TierChoice(
        "tail",
        "`files first`: active files stand in front of the conversation",
        "`history first`",
        "each edit of an active file voids the cached conversation",
    ),
    TierChoice(
        "blocks",
        "`tier`: one block for each tier",
        "`item`: one block for each item",
        "one change rewrites the whole tier, also in front of the change",
    ),
    TierChoice(
        "inside",
        "`n`: items of a tier stand by N",
        "`entry`: by their time of entry",
        "a new N moves blocks that did not change",
    ),
)
"""Every correction that can be switched to the behaviour of the seed design."""

SEED: Final = TierRules()
PAGEIN: Final = TierRules(
    promotion="rewritten",
    leaving="aged",
    placeholder="matches",
    history_age="at once",
    history_place="conversation",
    absent="leaves",
    seeding="tokens",
    anchors=False,
    history_form="messages",
    marks="provider",
    tail="history first",
    blocks="item",
    inside="entry",
)
PRESETS: Final[Mapping[str, TierRules]] = {"seed": SEED, "pagein": PAGEIN}


def preset(name: str) -> TierRules:
    """The rules of a preset. Raises BadSetting for an unknown name."""
    if name not in PRESETS:
        raise BadSetting(f"there is no preset {name!r} of tiers; one of {', '.join(PRESETS)}")
    return PRESETS[name]


NAMES: Final = tuple(one.name for one in fields(TierRules))
