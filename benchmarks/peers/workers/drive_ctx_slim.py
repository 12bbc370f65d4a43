"""ctx-slim: plan and apply before every call, on what it sent before plus what is new.

default: its balanced preset. horizon, messages: told that 100 calls are to come, which is about what long sessions have.
"""

import importlib
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.workers.serving import Facts, Message, Strategy, serve

MODEL = "anthropic/claude-opus-5"
HORIZON = 100


def open_strategy(variant: str) -> Strategy:
    """One conversation that keeps what was pruned."""
    slim: Any = importlib.import_module("context_slim")
    options = {"horizon": HORIZON} if variant != "default" else {}
    sent: list[Message] = []
    seen = 0

    def strategy(messages: list[Message], facts: Facts) -> Sequence[Message]:  # noqa: ARG001 -- the shape of all strategies
        nonlocal sent, seen
        history = [*sent, *messages[seen:]]
        pruned, _report = slim.apply(history, slim.plan(history, model=MODEL, **options))
        sent, seen = list(pruned), len(messages)
        return sent

    return strategy


if __name__ == "__main__":
    serve(open_strategy, "ctx-slim")
