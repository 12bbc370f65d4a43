"""distil: `compress_messages` at library defaults (digests that can be expanded), and with `verbatim=True` (lossless only)."""

import importlib
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.workers.serving import Facts, Message, Strategy, serve


def open_strategy(variant: str) -> Strategy:
    """The library keeps no state between calls but its store on disk."""
    distil: Any = importlib.import_module("distil")
    compress = distil.compress_messages

    def strategy(messages: list[Message], facts: Facts) -> Sequence[Message]:  # noqa: ARG001 -- the shape of all strategies
        return list(compress(messages, verbatim=variant == "verbatim").messages)

    return strategy


if __name__ == "__main__":
    serve(open_strategy, "distil-llm")
