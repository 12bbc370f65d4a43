"""Search for sessions that pagein makes over 2 % more expensive, as requests over the wire, charged by an independent price
model.

    python scripts/seek_request_losses.py --draws 20000 [--climbs 100 --tries 40] [--seed 0] [--jobs 2] [--minutes 60]

Each session is drawn with a client, a model, a preset and a provider that keeps its cache entries as documented or not, and is taken to
end after each of its calls. No HTTP, no store on a disk. Prints how many were tried and the worst of each preset and provider, with its
seed; exit status 1 where one loses more than 2 %. Not counted, and told apart, are the price of the recall tools that a known agent has
from its first request on, and ends from the first request of the client on that may fill its window. The same seed draws the
same session. `scripts/seek_losses.py` replays sessions as from their logs; this one sees the bytes, and the recall tools in them.
"""

import argparse
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from pagein.policy.eviction.presets import PRESETS, Preset
from pagein.simulator.provider_settings import KEPT, CacheKind
from pagein.testing.made_sessions import change_session, random_session
from pagein.testing.request_losses import RequestLoss, random_manner, request_loss

MOST = 0.02
_BATCH = 20
_SPREAD = 1_000_003  # apart seeds of climbs from those of draws
_COURSES: Sequence[tuple[Preset, CacheKind]] = [(preset, kind) for preset in PRESETS for kind in KEPT]


@dataclass(slots=True)
class Found:
    """What some sessions came to. worst: by preset and provider, with its seed; over: those that lost too much.

    dearest: the largest loss with the price of the recall tools, with its seed. fullest: the largest at the other ends.
    """

    tried: int = 0
    ends: int = 0
    worst: dict[tuple[Preset, CacheKind], tuple[RequestLoss, int]] = field(default_factory=dict)
    dearest: tuple[float, int] = (0.0, 0)
    fullest: tuple[float, int] = (-1.0, 0)
    over: list[tuple[Preset, CacheKind, RequestLoss, int]] = field(default_factory=list)

    def take(self, course: tuple[Preset, CacheKind], loss: RequestLoss, seed: int) -> None:
        """One more session."""
        self.worst[course] = max(self.worst.get(course, (loss, seed)), (loss, seed))
        self.dearest = max(self.dearest, (loss.whole, seed))
        self.fullest = max(self.fullest, (loss.full, seed))
        if loss.share > MOST:
            self.over.append((*course, loss, seed))

    def join(self, other: "Found") -> None:
        """What others found."""
        self.tried, self.ends = self.tried + other.tried, self.ends + other.ends
        self.over += other.over
        self.dearest = max(self.dearest, other.dearest)
        self.fullest = max(self.fullest, other.fullest)
        for course, (loss, seed) in other.worst.items():
            self.worst[course] = max(self.worst.get(course, (loss, seed)), (loss, seed))


def draws(seeds: Sequence[int], until: float) -> Found:
    """Sessions as they are drawn, each on one course. until: the time at which to stop, seconds since 1970."""
    found = Found()
    for seed in seeds:
        if time.time() > until:
            break
        chance, course = random.Random(seed), _COURSES[seed % len(_COURSES)]  # noqa: S311 -- chance, no secret
        made, manner = random_session(chance), random_manner(chance)
        found.tried, found.ends = found.tried + 1, found.ends + len(made.steps)
        found.take(course, request_loss(made, manner, *course), seed)
    return found


def climb(seed: int, tries: int, until: float) -> Found:
    """One session, changed again and again; a change that loses less is taken back."""
    found, chance, course = Found(), random.Random(seed), _COURSES[seed % len(_COURSES)]  # noqa: S311
    made, manner = random_session(chance), random_manner(chance)
    worst = RequestLoss(-1.0)
    for place in range(tries + 1):
        if time.time() > until:
            break
        other = change_session(made, chance) if place else made
        loss = request_loss(other, manner, *course)
        found.tried, found.ends = found.tried + 1, found.ends + len(other.steps)
        found.take(course, loss, seed)
        if loss >= worst:
            worst, made = loss, other
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Seek, and tell. Returns the exit status."""
    asked = _parser().parse_args(arguments)
    first, until, found = asked.seed, time.time() + 60 * asked.minutes, Found()
    with ProcessPoolExecutor(asked.jobs) as pool:
        seeds = range(first, first + asked.draws)
        work = [pool.submit(draws, seeds[at : at + _BATCH], until) for at in range(0, len(seeds), _BATCH)]
        work += [pool.submit(climb, first + _SPREAD + at, asked.tries, until) for at in range(asked.climbs)]
        for done, one in enumerate(as_completed(work), start=1):
            found.join(one.result())
            if done % 20 == 0:
                over = [seed for *_, seed in found.over]
                print(f"{found.tried:,} sessions, over {MOST:.0%}: {over}", file=sys.stderr, flush=True)
    print(
        f"{found.tried:,} sessions, each ending after any of its calls ({found.ends:,} ends); {len(found.over)} over {MOST:.0%}"
    )
    for (preset, kind), (loss, seed) in sorted(found.worst.items()):
        print(f"{preset}, {kind}: {loss.share:+.2%} at worst, after call {loss.end} of seed {seed}")
    print(f"with the recall tools: {found.dearest[0]:+.2%} at worst, by seed {found.dearest[1]}")
    print(f"where the client's own request was too long: {found.fullest[0]:+.2%} at worst, by seed {found.fullest[1]}")
    for preset, kind, loss, seed in found.over:
        print(f"    over: {preset}, {kind}, {loss.share:+.2%} after call {loss.end} of seed {seed}")
    return 1 if found.over else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Seek requests that pagein makes dearer.")
    parser.add_argument("--draws", type=int, default=1000, help="sessions drawn at random")
    parser.add_argument("--climbs", type=int, default=0, help="sessions that are made worse")
    parser.add_argument("--tries", type=int, default=40, help="changes tried on each of these")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes at work")
    parser.add_argument("--minutes", type=float, default=8.0, help="end after so long, with what was found by then")
    return parser


if __name__ == "__main__":
    sys.exit(main())
