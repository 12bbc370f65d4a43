"""Create UUIDv7 ids from system randomness, in ascending order within a process."""

import secrets
import threading

from pagein.model.identifiers import RANDOM_BYTES, uuid7


class RandomIds:
    """An IdSource with ascending ids, also within a millisecond and when the clock goes backwards."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tick = 0

    def __call__(self, at: float) -> str:
        with self._lock:
            # twelve bits below the millisecond count the ids of that millisecond
            self._tick = max(self._tick + 1, int(at * 1000) << 12)
            milliseconds, count = divmod(self._tick, 1 << 12)
        tail = secrets.token_bytes(RANDOM_BYTES - 2)
        return uuid7(milliseconds, count.to_bytes(2, "big") + tail)
