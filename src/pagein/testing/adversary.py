"""An adversary: draws sessions from a seed and changes them step by step, to find a session made dearer by pagein.

Each model has a cache of its own. Not drawn: requests beside the session, and a provider that loses cache entries
without any change. pagein cannot influence such a loss, but it may cost an anchor (`policy.economics.cache_keepalive`).
Evicted texts are never recalled, so no recall hides or causes a loss.
"""

import random
from dataclasses import dataclass

from pagein.simulator.provider_settings import CacheKind
from pagein.testing.losses import Loss, losses
from pagein.testing.made_sessions import MadeSession, change_session


@dataclass(slots=True)
class Worst:
    """The worst session found for a policy, and its loss."""

    loss: Loss
    made: MadeSession


def worsen(made: MadeSession, policy: str, chance: random.Random, tries: int, cache: CacheKind = "documented") -> Worst:
    """Change a session repeatedly, accepting only changes without a smaller loss, and return the worst session.

    cache: as in `losses`.
    """
    worst = Worst(losses(made, (policy,), cache)[policy], made)
    for _ in range(tries):
        other = change_session(worst.made, chance)
        loss = losses(other, (policy,), cache)[policy]
        if loss >= worst.loss:
            worst = Worst(loss, other)
    return worst
