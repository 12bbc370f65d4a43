"""How much of the savings of other sessions a session may put at risk for a longer cache TTL.

A session that has saved nothing may expose nothing (`policy.economics.cache_lifetimes`). So it borrows from the savings of
the others: all open sessions together at most a fifth of them, and one session at most `RESERVE`. What it borrows is *drawn*,
like what it exposes of its own savings, until its next request shows that nothing was lost, or until the client's own
entries would have expired too. No two requests draw the same savings: what others have borrowed of a session's own
savings it cannot expose itself. So the losses of all sessions together never exceed what they saved together, besides
the share of its own bill that each of them may risk.

Money is in BIT, times in seconds. Pure: the caller passes the time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

SHARE_AT_RISK: Final = 0.2
"""Share of their savings that all sessions together may expose beyond what each of them saved itself."""
RESERVE: Final = 100_000.0
"""The most that a session may expose beyond its own sum in hand, in BIT."""


class SessionRequest(NamedTuple):
    """A request of a session. at: time of sending; None for one that another process sent."""

    session: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Draw:
    """What a pause after a request may take of the savings of a store.

    own: BIT of the session's own savings. lent: BIT of the savings of other sessions.
    until: time from which on the client's own cache entries have expired too.
    """

    own: float
    lent: float
    until: float


NOTHING_DRAWN: Final = Draw(0.0, 0.0, float("-inf"))


@dataclass(frozen=True, slots=True)
class Exposure:
    """What a pause after a request may cost beyond the client's own loss, and who pays for it.

    cost: BIT. own: what the session itself saved, less its losses. in_hand: as in `cache_lifetimes.chosen`.
    until: as in `Draw`.
    """

    cost: float
    own: float
    in_hand: float
    until: float

    def draw(self) -> Draw:
        """Return what the pause may take of the store's savings: what the share of the session's bill does not pay."""
        beyond = max(0.0, self.cost - max(0.0, self.in_hand + min(0.0, self.own)))
        mine = min(beyond, max(0.0, self.own))
        return Draw(mine, beyond - mine, self.until)


@dataclass(frozen=True, slots=True)
class SharedSavings:
    """The savings of a store's sessions by cache TTLs.

    saved: BIT, less losses, over all sessions.
    draws: by request, the part that a pause may cost.
    """

    saved: float = 0.0
    draws: Mapping[SessionRequest, Draw] = field(default_factory=dict)

    def reserve(self, own: float, now: float, before: SessionRequest) -> float:
        """Return the BIT that a session may expose beyond its own sum in hand.

        Negative where others have borrowed of its own savings.

        own: what the session itself saved. before: its last request, whose draw ends with the next one.
        """
        mine = max(0.0, own)
        open_draws = [
            one for request, one in self.draws.items() if now <= one.until and not _ends_with(request, before)
        ]
        lent = sum(one.lent for one in open_draws)
        safe = self.saved - mine - lent - sum(one.own for one in open_draws)
        free = min(RESERVE, SHARE_AT_RISK * max(0.0, self.saved - mine) - lent)
        return max(-mine, min(safe, max(0.0, free)))

    def with_draw(self, request: SessionRequest, draw: Draw, before: SessionRequest | None = None) -> "SharedSavings":
        """Return the savings with the draw of a request, in place of that of the request `before`."""
        kept = {
            one: other
            for one, other in self.draws.items()
            if one != request and (before is None or not _ends_with(one, before))
        }
        return replace(self, draws={**kept, request: draw} if draw.own or draw.lent else kept)

    def at(self, now: float) -> "SharedSavings":
        """Return the savings without draws that have ended by a time."""
        return replace(self, draws={one: draw for one, draw in self.draws.items() if now <= draw.until})


def _ends_with(request: SessionRequest, before: SessionRequest) -> bool:
    """Return whether the draw of a request ends with the next request after `before`."""
    return request.session == before.session and request.at in (None, before.at)
