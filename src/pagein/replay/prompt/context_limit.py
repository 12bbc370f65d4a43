"""The context window in which a recording is replayed."""

from typing import Final

from pagein.providers.prices.price_lookup import Prices
from pagein.replay.prompt.billable_session import BillableSession

LARGE_WINDOW: Final = 1_000_000


def window_of(recording: BillableSession, prices: Prices) -> int:
    """Return the context window: as recorded, else as priced; the large one for a recording with larger prompts."""
    if recording.head.window:
        return recording.head.window
    return max(prices.window, LARGE_WINDOW) if beyond(recording, prices) else prices.window


def model_window(recording: BillableSession, prices: Prices) -> int:
    """Return the context window of the model: as recorded, else as priced, whether or not the recorded prompts fit."""
    return recording.head.window or prices.window


def beyond(recording: BillableSession, prices: Prices) -> dict[str, object]:
    """Return the flag of a session with prompts beyond the priced window: its largest prompt, tokens. Empty if all fit."""
    largest = max((sized.prompt for sized in recording.sized), default=0.0)
    fits = recording.head.window is not None or largest <= prices.window
    return {} if fits else {"beyond_window": round(largest)}
