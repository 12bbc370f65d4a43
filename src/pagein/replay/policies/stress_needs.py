"""The stress model: assumed needs of hidden blocks, beyond the needs visible in the recording."""

import hashlib
from collections.abc import Sequence
from typing import Final

STRESS_SHARE: Final = 0.10
STRESS_REACH: Final = 30
STRESS_PREVIEWS: Final = 0.25


class StressNeeds:
    """Drawn needs of one session, by call. The draw is a function of session and block: equal in every run.

    session: id of the recording.
    drawn: False draws nothing.
    """

    def __init__(self, session: str, *, drawn: bool) -> None:
        self._session = session
        self._is_drawn = drawn
        self._due: dict[int, list[int]] = {}

    def clear(self) -> None:
        """Forget every need: the window begins anew."""
        self._due.clear()

    def draw(self, index: int, ordinal: int) -> None:
        """Draw whether a block hidden at this call is needed again: a share is, within some calls."""
        digest = self._digest(ordinal)
        if self._is_drawn and int.from_bytes(digest[:4]) < STRESS_SHARE * (1 << 32):
            self._due.setdefault(index + 1 + digest[4] % STRESS_REACH, []).append(ordinal)

    def draw_preview(self, index: int, ordinal: int) -> None:
        """Draw whether a previewed block is needed at once: a quarter is."""
        if self._is_drawn and int.from_bytes(self._digest(ordinal)[8:12]) < STRESS_PREVIEWS * (1 << 32):
            self._due.setdefault(index, []).append(ordinal)

    def due(self, index: int) -> Sequence[int]:
        """Return the blocks that are needed at this call, once."""
        return self._due.pop(index, ())

    def _digest(self, ordinal: int) -> bytes:
        return hashlib.sha256(f"{self._session}\0{ordinal}".encode()).digest()
