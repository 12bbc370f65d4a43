"""The prompt under a policy: the blocks, with the form and the position of each.

A prompt is a chain of blocks. Appending a block costs one step; replacing one costs the blocks after it, as at the
provider. The cache simulator identifies a prefix by its chain id.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from pagein.providers.cache_simulator import Chains

Part: TypeAlias = Literal["floor", "user", "assistant", "arguments", "results", "stubs", "recalled", "hidden"]
PARTS: tuple[Part, ...] = ("floor", "user", "assistant", "arguments", "results", "stubs", "recalled", "hidden")
ROOT = 0


class PromptWindow:
    """The prompt of the next call. Positions count blocks from 1, as breakpoints do; position p covers blocks 1..p."""

    def __init__(self, chains: Chains) -> None:
        self._chains = chains
        self.chain: list[int] = []
        self.cumulative: list[float] = []
        self._keys: list[tuple[object, ...]] = []
        self._tokens: list[float] = []
        self._parts: list[Part] = []
        self.by_part: dict[Part, float] = dict.fromkeys(PARTS, 0.0)

    @property
    def size(self) -> float:
        """Tokens of the whole prompt."""
        return self.cumulative[-1] if self.cumulative else 0.0

    def __len__(self) -> int:
        return len(self.chain)

    def begin(self, blocks: Iterable[tuple[tuple[object, ...], Part, float]]) -> None:
        """Start anew with these blocks (a new window, or a compaction)."""
        for column in (self.chain, self.cumulative, self._keys, self._tokens, self._parts):
            column.clear()
        self.by_part = dict.fromkeys(PARTS, 0.0)
        for key, part, tokens in blocks:
            self.append(key, part, tokens)

    def append(self, key: tuple[object, ...], part: Part, tokens: float) -> int:
        """Put a block at the end and return its position."""
        parent = self.chain[-1] if self.chain else ROOT
        self.chain.append(self._chains.extend(parent, key))
        self.cumulative.append(self.size + tokens)
        self._keys.append(key)
        self._tokens.append(tokens)
        self._parts.append(part)
        self.by_part[part] += tokens
        return len(self.chain)

    def replace(self, changes: Mapping[int, tuple[tuple[object, ...], Part, float]]) -> int:
        """Put other blocks at these positions. Return the first position with a changed prefix."""
        for position, (key, part, tokens) in changes.items():
            at = position - 1
            self.by_part[self._parts[at]] -= self._tokens[at]
            self.by_part[part] += tokens
            self._keys[at], self._parts[at], self._tokens[at] = key, part, tokens
        first = min(changes)
        self._relink(first - 1)
        return first

    def after(self, parent: int, key: tuple[object, ...]) -> int:
        """Return the chain id of a block after a prefix, without appending the block."""
        return self._chains.extend(parent, key)

    def shrink(self, position: int, tokens: float) -> None:
        """Correct the size of a block without changing the identity of its prefix."""
        at = position - 1
        self.by_part[self._parts[at]] -= self._tokens[at] - tokens
        self._tokens[at] = tokens
        total = self.cumulative[at - 1] if at else 0.0
        for i in range(at, len(self._tokens)):
            total += self._tokens[i]
            self.cumulative[i] = total

    def tokens_at(self, position: int) -> float:
        """Return the tokens of the block at a position."""
        return self._tokens[position - 1]

    def before(self, position: int) -> float:
        """Return the tokens in front of the block at a position."""
        return self.cumulative[position - 2] if position > 1 else 0.0

    def _relink(self, at: int) -> None:
        parent = self.chain[at - 1] if at else ROOT
        total = self.cumulative[at - 1] if at else 0.0
        extend = self._chains.extend
        for i in range(at, len(self._keys)):
            parent = extend(parent, self._keys[i])
            total += self._tokens[i]
            self.chain[i] = parent
            self.cumulative[i] = total
