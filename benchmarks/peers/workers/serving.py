"""The loop of every worker: one request a line on standard input, its answer on standard output.

A request is `{"window": n, "tokens": t, "limit": l, "messages": [...]}`; the answer is `{"count": n, "seconds": s, "cpu": c}` and as
many messages, each on a line of its own, or `{"error": "..."}`. The first line out says which packages answer, and in which versions. A new window (the host compacted, or
another session) gets a new strategy object. Workers run in the peer's own environment: the standard library is all they share.
Nothing here leaves the machine: a connection to anywhere but loopback is refused.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, TextIO, TypeAlias

Message: TypeAlias = dict[str, Any]
Facts: TypeAlias = dict[str, Any]
Strategy: TypeAlias = Callable[[list[Message], Facts], Sequence[Message]]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(open_strategy: Callable[[str], Strategy], package: str) -> None:
    """Answer until standard input ends. open_strategy: a fresh strategy for a variant, which the command line names."""
    variant = sys.argv[1] if len(sys.argv) > 1 else ""
    out = _own_output()
    sys.addaudithook(_stay_home)
    strategy, window = open_strategy(variant), None
    print(json.dumps({"package": package, "version": version(package)}), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if window is not None and request["window"] != window:
            strategy = open_strategy(variant)
        window = request["window"]
        for one in _answer(strategy, request):
            print(json.dumps(one, separators=(",", ":")), file=out)
        out.flush()


def _answer(strategy: Strategy, request: Facts) -> list[dict[str, Any]]:
    start, worked = time.perf_counter(), time.process_time()
    try:
        messages = list(strategy(request["messages"], request))
    except Exception as problem:  # noqa: BLE001 -- whatever a peer raises is a failed call, which is counted
        return [{"error": f"{type(problem).__name__}: {problem}"[:300]}]
    took = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - worked}
    return [{"count": len(messages), **took}, *messages]


def _own_output() -> TextIO:
    """Standard output for us alone: what a peer prints goes to standard error."""
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return ours


def _stay_home(event: str, details: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(details[1], tuple) and details[1][0] not in _LOOPBACK:
        raise OSError("no network in a benchmark")
    if event == "socket.getaddrinfo" and details[0] not in (*_LOOPBACK, None, ""):
        raise OSError("no network in a benchmark")
