"""Settings of layouts: which conversations are pooled, what stays in a pooled window, and how large tiers are to be."""

from typing import Final

from pagein.engine.engine import Settings
from pagein.settings.kinds import Key, choice, number, texts, whole

_ENGINE: Final = Settings()
_POOLS: Final = _ENGINE.pools

LAYOUT: Final[tuple[Key, ...]] = (
    choice(
        "layout",
        _ENGINE.layout,
        ("inline", "pooled"),
        "How the gateway and pi's extension show new conversations. `pooled`: results and files are objects beside the conversation, which the model activates and deactivates. It needs `recall`. A conversation keeps the layout with which it began.",
    ),
    texts(
        "pooled_clients",
        'With `layout = "pooled"`: the clients whose conversations are pooled, such as `claude-code`, `codex`, `opencode` or `pi`. Empty: every client.',
    ),
    whole("pool_calls", _POOLS.recent_calls, "In a pooled window: calls of a turn whose outputs stay active."),
    whole(
        "pool_turns",
        _POOLS.recent_turns,
        "In a pooled window: turns whose calls stay active, the current one included.",
    ),
    whole("pool_by_hand", _POOLS.by_hand, "In a pooled window: number of newest activations that stay without a pin."),
    whole(
        "cache_min_tokens",
        _ENGINE.cache_min_tokens,
        "In prompts of `pagein.tiered`: smallest cached block of a tier, in tokens. 0: tiers ask for no tokens, and history never enters one.",
    ),
    number(
        "cache_buffer_multiplier",
        _ENGINE.cache_buffer_multiplier,
        "In prompts of `pagein.tiered`: target size of a tier, as a multiple of `cache_min_tokens`.",
    ),
)
"""The settings of layouts, in the order of the documentation."""
