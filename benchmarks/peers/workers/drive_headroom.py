"""headroom: `compress()` as its README calls it, fed with its own output, and in its mode for live agents.

default: the whole history at every call, as the README shows. frozen: the history it sent before plus what is new, with
`frozen_message_count`, as its documentation advises callers that run their own loop. agent: `mode="agent"`, lossless only.
"""

import importlib
import logging
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.workers.serving import Facts, Message, Strategy, serve

MODEL = "claude-sonnet-4-5-20250929"


def open_strategy(variant: str) -> Strategy:
    """One conversation's use of the library."""
    logging.disable(logging.CRITICAL)
    headroom: Any = importlib.import_module("headroom")
    options = {"mode": "agent"} if variant == "agent" else {}
    sent: list[Message] = []
    seen = 0

    def strategy(messages: list[Message], facts: Facts) -> Sequence[Message]:
        nonlocal sent, seen
        if variant != "frozen":
            return list(headroom.compress(messages, model=MODEL, model_limit=facts["limit"], **options).messages)
        history = [*sent, *messages[seen:]]
        done = headroom.compress(history, model=MODEL, model_limit=facts["limit"], frozen_message_count=len(sent))
        sent, seen = list(done.messages), len(messages)
        return sent

    return strategy


if __name__ == "__main__":
    serve(open_strategy, "headroom-ai")
