"""Search for sessions that pagein's own actions make over 2 % more expensive: by random draws, and by an adversary that worsens
the worst of them.

    python scripts/seek_losses.py --draws 30000 --climbs 200 --tries 100 --seed 0 [--jobs 2] [--minutes 8]

Every session is also taken to end after each of its calls. Prints how many were tried and the worst for each policy, with the seed it
grew from; exit status 1 where one loses more than 2 %. The same seed draws the same sessions. Ends from the call on at which append-only
reaches the limit of the safety valve are told apart and do not count: append-only is about to be refused or compacted there.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from pagein.simulator.provider_settings import KEPT, CacheKind  # noqa: E402
from pagein.testing.adversary import Worst, worsen  # noqa: E402 -- the sources beside this script come first
from pagein.testing.losses import POLICIES, losses  # noqa: E402
from pagein.testing.made_sessions import random_session  # noqa: E402

MOST = 0.02
_BATCH = 100
_SPREAD = 1_000_003  # apart seeds of climbs from those of draws


@dataclass(slots=True)
class Found:
    """What some sessions came to. tried: sessions; ends: calls after which each of them may have ended; worst: by policy, with its seed.

    fullest: the worst of the ends with a full window, by policy, with its seed.
    """

    tried: int = 0
    ends: int = 0
    over: int = 0
    worst: dict[str, tuple[Worst, int]] = field(default_factory=dict)
    fullest: dict[str, tuple[float, int]] = field(default_factory=dict)

    def take(self, policy: str, worst: Worst, seed: int) -> None:
        """One more session."""
        self.over += worst.loss.share > MOST
        if policy not in self.worst or worst.loss > self.worst[policy][0].loss:
            self.worst[policy] = worst, seed
        self.take_full(policy, worst.loss.full, seed)

    def take_full(self, policy: str, share: float, seed: int) -> None:
        """The loss of one more session with a full window."""
        self.fullest[policy] = max(self.fullest.get(policy, (0.0, seed)), (share, seed))

    def join(self, other: "Found") -> None:
        """What others found."""
        self.tried, self.ends, over = self.tried + other.tried, self.ends + other.ends, self.over + other.over
        for policy, (worst, seed) in other.worst.items():
            self.take(policy, worst, seed)
        for policy, (share, seed) in other.fullest.items():
            self.take_full(policy, share, seed)
        self.over = over


def draws(seeds: Sequence[int], until: float, cache: CacheKind) -> Found:
    """Sessions as they are drawn, under all policies. until: the time at which to stop, seconds since the epoch."""
    found = Found()
    for seed in seeds:
        if time.time() > until:
            break
        made = random_session(random.Random(seed))  # noqa: S311 -- chance, no secret
        found.tried, found.ends = found.tried + 1, found.ends + len(made.steps)
        for policy, loss in losses(made, cache=cache).items():
            found.take(policy, Worst(loss, made), seed)
    return found


def climb(seed: int, policy: str, tries: int, until: float, cache: CacheKind) -> Found:
    """One session, made worse again and again. until: the time after which none is begun, seconds since the epoch."""
    if time.time() > until:
        return Found()
    chance = random.Random(seed)  # noqa: S311
    worst = worsen(random_session(chance), policy, chance, tries, cache)
    found = Found(tries + 1, (tries + 1) * len(worst.made.steps))
    found.take(policy, worst, seed)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Seek, and tell. Returns the exit status."""
    asked = _parser().parse_args(arguments)
    first, until = asked.seed, time.time() + 60 * asked.minutes
    found = Found()
    with ProcessPoolExecutor(asked.jobs) as pool:
        numbers = range(first, first + asked.draws)
        work = [
            pool.submit(draws, numbers[at : at + _BATCH], until, asked.cache) for at in range(0, len(numbers), _BATCH)
        ]
        climbs = ((first + _SPREAD + at, POLICIES[at % len(POLICIES)]) for at in range(asked.climbs))
        work += [pool.submit(climb, seed, policy, asked.tries, until, asked.cache) for seed, policy in climbs]
        for done, one in enumerate(as_completed(work), start=1):
            found.join(one.result())
            if done % 20 == 0:
                print(f"{done} of {len(work)}: {_told(found)}", file=sys.stderr, flush=True)
    print("\n".join(_lines(found)))
    return 1 if found.over else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Seek sessions that pagein makes dearer.")
    parser.add_argument("--draws", type=int, default=1000, help="sessions drawn at random")
    parser.add_argument(
        "--climbs", type=int, default=30, help="sessions that are made worse, for one policy each in turn"
    )
    parser.add_argument("--tries", type=int, default=100, help="changes tried on each of these")
    parser.add_argument(
        "--cache", choices=sorted(KEPT), default="documented", help="how long the provider keeps entries of its cache"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes at work")
    parser.add_argument("--minutes", type=float, default=8.0, help="end after so long, with what was found by then")
    return parser


def _told(found: Found) -> str:
    worst = ", ".join(f"{name} {100 * one.loss.share:+.2f} %" for name, (one, _) in sorted(found.worst.items()))
    return f"{found.tried} sessions, {found.over} over {100 * MOST:.0f} %; worst {worst}"


def _lines(found: Found) -> Iterable[str]:
    yield f"{found.tried:,} sessions, each ending after any of its calls ({found.ends:,} ends); {found.over} over {100 * MOST:.0f} %"
    for name, (worst, seed) in sorted(found.worst.items()):
        yield f"{name}: {100 * worst.loss.share:+.2f} % at worst, by seed {seed}"
        if worst.loss.share > MOST:
            yield f"    {worst.made}"
    for name, (share, seed) in sorted(found.fullest.items()):
        yield f"{name}, append-only at the end of its window: {100 * share:+.2f} % at worst, by seed {seed}"


if __name__ == "__main__":
    sys.exit(main())
