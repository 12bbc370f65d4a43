"""A peer of our own making, in a process of its own."""

import os
import socket
from collections.abc import Sequence

from benchmarks.peers.workers.serving import Facts, Message, Strategy, serve


def open_strategy(variant: str) -> Strategy:
    calls = 0

    def strategy(messages: list[Message], facts: Facts) -> Sequence[Message]:
        nonlocal calls
        calls += 1
        match variant:
            case "drops":
                return []
            case "raises":
                raise ValueError("no such thing")
            case "ends":
                os._exit(3)
            case "calls home":
                socket.create_connection(("192.0.2.1", 80), timeout=5)
            case "says how":
                return [{"role": "user", "content": f"{calls} {facts['window']} {facts['tokens']} {facts['limit']}"}]
            case "chatters":
                print("hello")  # noqa: T201 -- as some libraries do
        return messages

    return strategy


if __name__ == "__main__":
    serve(open_strategy, "pytest")
