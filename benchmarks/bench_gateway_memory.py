"""What memory costs a call: a gateway with memory and one without, beside one another in the same run, in both orders.

Upstream, gateways and client are processes of their own on loopback (`bench_gateway.py`). Each round sends the same request of 1 MB to
both; who is first alternates, and who is asked behind whom has a figure of its own. Half of the rounds leave the gateways time to rest, in
which one of them brings memory up to the store.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from aiohttp import ClientSession, TCPConnector

sys.path.insert(0, str(Path(__file__).parent))
import bench_gateway
from bench_gateway import _grow, _process, _session, _timed

_ROUNDS: Final = 60
_OPENING: Final = 4
"""Rounds that open the session and are not counted."""
_PAUSES: Final = {"calls at once": 0.05, "calls after pauses": 1.2}
"""Seconds between two rounds."""


def measure() -> dict[str, float]:
    with ExitStack() as stack:
        upstream, _ = stack.enter_context(_process(bench_gateway.__file__, "upstream"))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        serve: tuple[str, ...] = ("-m", "pagein", "serve", "--port", "0", "--json", "--log", os.devnull)
        serve += ("--anthropic", upstream, "--openai", upstream)
        remembers, _ = stack.enter_context(_process(*serve, "--store", str(Path(folder) / "with.pagein")))
        forgets, _ = stack.enter_context(
            _process(*serve, "--store", str(Path(folder) / "without.pagein"), memory="false")
        )
        return asyncio.run(_measured(remembers, forgets))


async def _measured(remembers: str, forgets: str) -> dict[str, float]:
    figures: dict[str, float] = {}
    async with ClientSession(connector=TCPConnector(limit=0)) as client:
        for name, pause in _PAUSES.items():
            session = _session(name, 1_000_000)
            found: dict[tuple[str, str], list[float]] = {}
            for number in range(_ROUNDS):
                body = json.dumps(session).encode()
                order = (remembers, forgets) if number % 2 else (forgets, remembers)
                for place, address in zip(("first", "second"), order, strict=True):
                    who = "with memory" if address == remembers else "without memory"
                    took = await _timed(client, address, body)
                    if number >= _OPENING:
                        found.setdefault((who, place), []).append(took)
                _grow(session, number)
                await asyncio.sleep(pause)
            for (who, place), took_all in sorted(found.items()):
                figures[f"{name}, {who}, asked {place}, ms, median"] = statistics.median(took_all)
            both = {
                who: [one for (name_, _), all_ in found.items() if name_ == who for one in all_] for who, _ in found
            }
            for who, took_all in sorted(both.items()):
                figures[f"{name}, {who}, ms, median"] = statistics.median(took_all)
    return figures


if __name__ == "__main__":
    for told, figure in measure().items():
        sys.stdout.write(f"{told}: {figure:.2f}\n")
