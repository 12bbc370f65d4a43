"""Measure how often key shapes fire on recorded sessions, by shape: on recordings cleaned of secrets, most hits are false.

    python scripts/measure_keys.py DIR|ARCHIVE... [--show N]

`--show` prints so many of the found texts for each shape, with what stands in front of them.
"""

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pagein.model.messages import Block, Message, Text, Thinking, ToolCall, ToolResult  # noqa: E402 as in measure_bar
from pagein.policy.privacy.exclusions import keys_in  # noqa: E402
from pagein.replay.readers import SkippedSource, find, read_source  # noqa: E402

_BEFORE = 40


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--show", type=int, default=0)
    asked = parser.parse_args(arguments)
    blocks: Counter[str] = Counter()
    chars: Counter[str] = Counter()
    fired: Counter[str] = Counter()
    held: Counter[str] = Counter()
    shapes: Counter[str] = Counter()
    samples: dict[str, dict[str, None]] = defaultdict(dict)
    seconds = 0.0
    for kind, text in _texts(asked.paths):
        began = time.perf_counter()
        found = keys_in(text)
        seconds += time.perf_counter() - began
        blocks[kind] += 1
        chars[kind] += len(text)
        fired[kind] += bool(found)
        held[kind] += len(text) * bool(found)
        for one in found:
            shapes[one.shape] += 1
            samples[one.shape][text[max(0, one.start - _BEFORE) : one.end].replace("\n", "\\n")] = None
    for kind in blocks:
        share, part = fired[kind] / blocks[kind], held[kind] / max(1, chars[kind])
        print(f"{kind}: {fired[kind]:,} of {blocks[kind]:,} ({share:.3%}), {part:.3%} of characters")
    for name, count in shapes.most_common():
        print(f"  {count:6,} {name} ({len(samples[name]):,} different)")
        for sample in list(samples[name])[: asked.show]:
            print(f"         {sample[:200]}")
    print(f"{seconds * 1e9 / max(1, sum(chars.values())):.2f} ns a character")
    return 0


def _texts(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    for source in find(paths):
        if isinstance(source, SkippedSource):
            continue
        for session in read_source(source):
            for one in session.entries:
                if isinstance(one, Message):
                    yield from (found for block in one.blocks if (found := _text(block)) is not None)


def _text(block: Block) -> tuple[str, str] | None:
    match block:
        case Text():
            return "said", block.text
        case Thinking():
            return "thought", block.text
        case ToolCall():
            return "arguments", block.arguments
        case ToolResult():
            return "results", block.text
    return None


if __name__ == "__main__":
    sys.exit(main())
