"""The context window that a recording is replayed in."""

from typing import Final

from pagein.providers.prices.price_lookup import Prices
from pagein.replay.prompt.recording import BillableSession

LARGE_WINDOW: Final = 1_000_000


def window_of(recording: BillableSession, prices: Prices) -> int:
    """The context window: as recorded, else that of the prices; a recording whose prompts did not fit that had the large one."""
    if recording.head.window:
        return recording.head.window
    return max(prices.window, LARGE_WINDOW) if beyond(recording, prices) else prices.window


def model_window(recording: BillableSession, prices: Prices) -> int:
    """The context window that the model has: as recorded, else that of the prices, whether the recorded prompts fit it or not."""
    return recording.head.window or prices.window


def beyond(recording: BillableSession, prices: Prices) -> dict[str, object]:
    """The flag of a session whose prompts do not fit the window of the prices: its largest prompt, tokens."""
    largest = max((sized.prompt for sized in recording.sized), default=0.0)
    fits = recording.head.window is not None or largest <= prices.window
    return {} if fits else {"beyond_window": round(largest)}
