"""Laws of reading, on random sessions: no answer claims more than the request shows."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.model.read_records import decode, decode_entry
from pagein.model.spans import Spans
from pagein.policy.reads.baseline import byte_length
from pagein.policy.reads.knowledge import fold
from pagein.policy.reads.read_request import ReadingSettings
from pagein.testing.read_script import ReadScript

PATHS = ("a.py", "b.md")
WORDS = (
    "",
    " ",
    "}",
    "return",
    "x = 1",
    "def f():",
    "\t",
    "\r",
    "[readcache: unchanged, 3 lines]",
    "-- a",
    "++ b",
    "\x00",
    "é\u2028",
)


def text_of(draw: random.Random) -> str:
    """A text of every awkward kind: empty, one line, long lines, repeated lines, with and without a last newline."""
    kind = draw.randrange(8)
    if kind == 0:
        return draw.choice(["", "\n", "x", "\ufeff", "\ufeffa\r\nb\r\n"])
    size = draw.choice([3, 8, 40, 120, 400])
    lines = [
        draw.choice(WORDS) if draw.random() < 0.3 else f"line {draw.randrange(size * 2)} {'lorem ' * draw.randrange(4)}"
        for _ in range(size)
    ]
    return draw.choice(["\n", "\n", "\r\n"]).join(lines) + draw.choice(["", "\n"])


def changed(draw: random.Random, text: str) -> str:
    """A text with some lines inserted, deleted, replaced, moved or cut off."""
    lines = text.split("\n")
    for _ in range(draw.randrange(1, 4)):
        at, size = draw.randrange(len(lines) + 1), draw.randrange(1, 12)
        kind = draw.randrange(6)
        if kind == 0:
            lines[at:at] = [f"new {draw.randrange(99)}" for _ in range(size)]
        elif kind == 1:
            del lines[at : at + size]
        elif kind == 2:
            lines[at : at + size] = [f"other {draw.randrange(99)} {'ipsum ' * 3}" for _ in range(size)]
        elif kind == 3:
            block = lines[at : at + size]
            del lines[at : at + size]
            to = draw.randrange(len(lines) + 1)
            lines[to:to] = block
        elif kind == 4:
            del lines[max(1, len(lines) - size) :]
        else:
            lines.append(draw.choice(["", "end"]))
    return "\n".join(lines)


def acts(draw: random.Random, script: ReadScript) -> None:
    """One random thing that can happen in a session."""
    path = draw.choice(PATHS)
    text = script.files[path]
    kind = draw.random()
    if kind < 0.45:
        reads(draw, script, path)
    elif kind < 0.6:
        script.changes(path, changed(draw, text))
    elif kind < 0.66:
        # back to an older text: the model must not be told that nothing changed
        script.changes(path, draw.choice(sorted(script.versions.values())).decode())
    elif kind < 0.72:
        script.writes(path, changed(draw, text) if draw.random() < 0.5 else text_of(draw))
    elif kind < 0.86:
        edits(draw, script, path)
    elif kind < 0.92:
        total = text.count("\n") + 1
        first = draw.randrange(1, total + 3)
        script.refreshes(path, first, first + draw.randrange(9)) if draw.random() < 0.7 else script.refreshes(path)
    elif kind < 0.95:
        script.compacts()
    else:
        script.loses(path)


def reads(draw: random.Random, script: ReadScript, path: str) -> None:
    total = script.files[path].count("\n") + 1
    offset = None if draw.random() < 0.4 else draw.randrange(1, total + 1)
    limit = None if draw.random() < 0.4 else draw.randrange(1, total + 5)
    script.reads(path, offset, limit, bypass=draw.random() < 0.05)


def edits(draw: random.Random, script: ReadScript, path: str) -> None:
    text = script.files[path]
    if not text:
        return
    at = draw.randrange(len(text))
    old = text[at : at + draw.randrange(1, 60)]
    new = "\n".join(f"mine {draw.randrange(99)}" for _ in range(draw.randrange(9))) + draw.choice(["", "\n"])
    if text.count(old) == 1 or draw.random() < 0.5:
        everywhere = text.count(old) > 1
        script.edits(path, old, new, everywhere=everywhere, seen_before=draw.random() < 0.5)


def session(seed: int, steps: int, bounds: ReadingSettings) -> list[ReadScript]:
    """The leaves of a random tree of sessions, each checked after every step."""
    draw = random.Random(seed)  # noqa: S311 - a session, not a secret
    first = ReadScript(bounds)
    for path in PATHS:
        first.changes(path, text_of(draw))
    leaves = [first]
    for _ in range(steps):
        script = draw.choice(leaves)
        if draw.random() < 0.05 and len(leaves) < 4:
            leaves.append(script.forks())
        before = len(script.answers)
        acts(draw, script)
        assert script.objections() == (), (script.last.text, script.objections())
        for decision, plain in zip(script.answers[before:], script.baselines[before:], strict=True):
            assert byte_length(decision.text) <= byte_length(plain.text)
            assert decision.text.count("\n") <= plain.text.count("\n")
        for path in PATHS:
            # the fold says no more than what the version has
            for version, known in script.state.of(path).versions:
                assert Spans.of((1, script.versions[version].decode().count("\n") + 1)).contains(known.spans)
    return leaves


BOUNDS = [
    ReadingSettings(),
    ReadingSettings(new_answers=False),
    ReadingSettings(min_run=1, byte_ratio=99, line_ratio=99, context=0),
    ReadingSettings(max_bases=1, context=1),
]


@pytest.mark.parametrize("bounds", BOUNDS, ids=["default", "specification", "eager", "narrow"])
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_the_witness_never_objects_and_no_answer_is_longer_than_its_text(bounds: ReadingSettings, seed: int) -> None:
    session(seed, 30, bounds)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), cut=st.floats(0, 1))
def test_folding_a_journal_in_two_parts_gives_what_folding_it_whole_gives(seed: int, cut: float) -> None:
    for leaf in session(seed, 25, ReadingSettings()):
        at = int(cut * len(leaf.events))
        assert fold(leaf.events[at:], fold(leaf.events[:at])) == fold(leaf.events) == leaf.state


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_the_records_of_a_session_give_the_same_state_in_any_process(seed: int) -> None:
    for leaf in session(seed, 25, ReadingSettings()):
        stored = json.loads(json.dumps(leaf.journal()))
        again = [
            event
            if record == {"type": "compaction"}
            else decode(record)
            if "readcache" in record
            else decode_entry(record)
            for event, record in zip(leaf.events, stored, strict=True)
        ]
        assert fold(again) == leaf.state
