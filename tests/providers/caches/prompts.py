"""Prompts for cache tests, written as block names with sizes."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pagein.providers.cache_simulator import Breakpoint, CacheRequest, CacheRules, CacheSimulator, CacheUsage, Chains

Block = tuple[object, float]


def blocks(count: int, size: float = 1000, tag: object = "b") -> list[Block]:
    return [((tag, i), size) for i in range(count)]


class Conversation:
    """A simulator with the names its prompts are given."""

    def __init__(self, rules: CacheRules) -> None:
        self.chains = Chains()
        self.simulator = CacheSimulator(rules)

    def request(
        self, at: float, prompt: Sequence[Block], marks: Iterable[Breakpoint | int] = (), **more: float
    ) -> CacheRequest:
        parent, total = Chains.ROOT, 0.0
        chain: list[int] = []
        cumulative: list[float] = []
        for key, size in prompt:
            parent = self.chains.extend(parent, key)
            total += size
            chain.append(parent)
            cumulative.append(total)
        made = CacheRequest(
            at, chain, cumulative, tuple(m if isinstance(m, Breakpoint) else Breakpoint(m) for m in marks)
        )
        return replace(made, **more)  # type: ignore[arg-type]  # the fields are numbers

    def ask(
        self, at: float, prompt: Sequence[Block], marks: Iterable[Breakpoint | int] = (), **more: float
    ) -> CacheUsage:
        return self.simulator.serve(self.request(at, prompt, marks, **more))
