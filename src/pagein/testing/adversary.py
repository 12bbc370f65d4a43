"""An adversary: it draws sessions from a seed and changes them step by step, to find one that pagein makes dearer.

Each model has a cache of its own. What is not drawn: requests beside the session, and a provider that loses what it holds while nothing changed. That is nobody's doing,
but an anchor may be lost by it (`policy.economics.cache_keepalive`). Nothing that left is asked for again, so no recall hides or makes a loss.
"""

import random
from dataclasses import dataclass

from pagein.testing.losses import Loss, losses
from pagein.testing.made_sessions import MadeSession, change_session


@dataclass(slots=True)
class Worst:
    """The worst session that was found for a policy, and what it lost."""

    loss: Loss
    made: MadeSession


def worsen(made: MadeSession, policy: str, chance: random.Random, tries: int) -> Worst:
    """What becomes of a session that is changed again and again, where no change may lose less."""
    worst = Worst(losses(made, (policy,))[policy], made)
    for _ in range(tries):
        other = change_session(worst.made, chance)
        loss = losses(other, (policy,))[policy]
        if loss >= worst.loss:
            worst = Worst(loss, other)
    return worst
