"""Every line is one character that is typed once, so that identity is content: whoever typed it wrote the line.

A file is changed at random by the sessions of agents, who know it from reads of all or of some lines or from an old text,
and by what no call shows: people, formatters, and git, which brings back old texts. What the index would keep is told to
`line_origins`. It may not know; it must not be wrong.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.blame.edit_bases import applied
from pagein.policy.blame.known_states import Author, Deed, KnownState
from pagein.policy.blame.line_origins import line_origins
from pagein.policy.reads.text_edit import TextEdit

Writer = tuple[str, int]
PERSON: Writer = ("person", 0)
FIRST = 0x4E00  # a range of letters, long enough for any run


@dataclass
class World:
    """A file, what is known of it, and the truth.

    writers: who may be named for a character: who typed it, and who typed it again.
    texts: what each session believes to be the whole text, as the index does.
    """

    random: random.Random
    lines: list[str] = field(default_factory=list)
    states: list[KnownState] = field(default_factory=list)
    writers: dict[str, set[Writer]] = field(default_factory=dict)
    texts: dict[str, list[str] | None] = field(default_factory=dict)
    turns: Counter[str] = field(default_factory=Counter)
    commits: list[list[str]] = field(default_factory=lambda: [[]])
    stash: list[str] | None = None
    last: tuple[str, bool] = ("", False)
    is_unseen: bool = False
    clock: Iterator[int] = field(default_factory=count)
    sessions: str = "abc"

    def typed(self, writer: Writer, count: int) -> list[str]:
        made = [chr(FIRST + len(self.writers) + k) for k in range(count)]
        self.writers.update({letter: {writer} for letter in made})
        return made

    def place(self) -> tuple[int, int]:
        first = self.random.randint(0, len(self.lines))
        return first, min(len(self.lines), first + self.random.randint(0, 3))

    def known(self, deed: Deed, session: str, **told: object) -> None:
        author = Author("agent", session, self.turns[session])
        self.states.append(KnownState(str(len(self.states)), next(self.clock), deed, author, **told))  # type: ignore[arg-type]
        is_whole = told["lines"] is not None and told.get("spans") is None
        self.last = (session, is_whole and (deed != "edit" or self.last == (session, True)))
        self.is_unseen = self.is_unseen and not (deed in ("read", "write") and is_whole)

    # --- agents ---

    def session(self) -> str:
        name = self.random.choice(self.sessions)
        self.turns[name] += self.random.random() < 0.4
        return name

    def read(self) -> None:
        name = self.session()
        self.texts[name] = list(self.lines)
        self.known("read", name, lines=tuple(self.lines))

    def read_part(self) -> None:
        name, (first, stop) = self.session(), self.place()
        if first == stop:
            return
        text = self.texts.get(name)
        if text is not None and text[first:stop] != self.lines[first:stop]:
            self.texts[name] = None
        self.known("read", name, lines=tuple(self.lines[first:stop]), spans=((first + 1, stop),))

    def write(self) -> None:
        """Write a whole text: what the session believes, changed. Some lines may change their place."""
        name = self.session()
        writer = (name, self.turns[name])
        text = list(self.texts.get(name) or [])
        for _ in range(self.random.randint(1, 3)):
            first = self.random.randint(0, len(text))
            text[first : first + self.random.randint(0, 2)] = self.typed(writer, self.random.randint(0, 3))
        if text and self.random.random() < 0.3:
            before, after = self.random.randrange(len(text)), self.random.randrange(len(text))
            text.insert(after, text.pop(before))
            for line in text[min(before, after) : max(before, after) + 1]:  # which of them moved is a matter of view
                self.writers[line.strip()].add(writer)
        # what was gone is written again; who does not know the file may have moved the rest
        is_fresh = not self.is_unseen and self.texts.get(name) == self.lines
        for line in set(text) - set(self.lines) if is_fresh else text:
            self.writers[line.strip()].add(writer)
        self.lines, self.texts[name] = text, list(text)
        self.known("write", name, lines=tuple(text))

    def edit(self) -> None:
        name, (first, stop) = self.session(), self.place()
        if not self.lines:
            return
        writer = (name, self.turns[name])
        first = min(first, len(self.lines) - 1)
        old = self.lines[first : max(stop, first + 1)]
        kept = old[: self.random.randint(0, len(old))]
        new = [*kept, *self.typed(writer, self.random.randint(0, 3))]
        edit = TextEdit("".join(f"\n{line}" for line in old), "".join(f"\n{line}" for line in new))
        after = applied(self.lines, [edit])
        if after is None:
            return
        believed = self.texts.get(name)
        text = None if believed is None else applied(believed, [edit])
        is_needed = text is None or self.last != (name, True)
        self.lines, self.texts[name] = after, text
        self.known("edit", name, lines=None if text is None else tuple(text), edits=(edit,) if is_needed else ())

    def restore(self) -> None:
        """Type lines again that the file had once."""
        name, old = self.session(), self.random.choice(self.commits)
        writer = (name, self.turns[name])
        self.lines, self.texts[name] = list(old), list(old)
        for line in old:
            self.writers[line.strip()].add(writer)
        self.known("write", name, lines=tuple(old))

    # --- what no call shows ---

    def person(self) -> None:
        first, stop = self.place()
        self.lines[first:stop] = self.typed(PERSON, self.random.randint(0, 3))

    def cut_and_paste(self) -> None:
        first, stop = self.place()
        cut, self.lines[first:stop] = self.lines[first:stop], []
        at = self.random.randint(0, len(self.lines))
        self.lines[at:at] = cut

    def formatter(self) -> None:
        first, stop = self.place()
        self.lines[first:stop] = [
            "  " + line if self.random.random() < 0.7 else line.strip() for line in self.lines[first:stop]
        ]

    def commit(self) -> None:
        """Also amend, squash, split and rebase, as far as the text goes."""
        self.commits.append(list(self.lines))

    def reset(self) -> None:
        self.lines = list(self.random.choice(self.commits))

    def put_aside(self) -> None:
        if self.stash is None:
            self.stash, self.lines = list(self.lines), list(self.commits[-1])
        else:
            self.lines, self.stash = self.stash, None


SEEN = (World.read, World.read_part, World.write, World.edit, World.edit, World.edit)
UNSEEN = (World.person, World.cut_and_paste, World.formatter, World.commit, World.reset, World.put_aside)


def wrong_lines(world: World, *elsewhere: World) -> list[str]:
    told = line_origins(world.states, world.lines, (), [other.states for other in elsewhere])
    states = [state for one in (world, *elsewhere) for state in one.states]
    out = []
    for line, origin in zip(world.lines, told, strict=True):
        if origin.answer == "unknown":
            continue
        assert origin.state is not None
        author = states[origin.state].author
        if origin.answer != "agent" or (author.session, author.turn) not in world.writers[line.strip()]:
            out.append(f"{line.strip()}: {origin} {author}, wrote: {world.writers[line.strip()]}")
    return out


def run(seed: int, steps: int, deeds: Sequence[Callable[[World], None]]) -> World:
    world = World(random.Random(seed))  # noqa: S311 - a history, not a secret
    for _ in range(steps):
        deed = world.random.choice(deeds)
        deed(world)
        world.is_unseen |= deed in UNSEEN
    return world


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_no_line_is_given_to_a_session_that_did_not_write_it(seed: int, steps: int) -> None:
    world = run(seed, steps, [*SEEN, World.restore, *UNSEEN])
    assert wrong_lines(world) == []


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_no_line_is_given_to_a_session_that_did_not_write_it_in_another_worktree(seed: int, steps: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - a history, not a secret
    one = World(draw)
    two = World(draw, writers=one.writers, clock=one.clock, sessions="def")
    for _ in range(steps):
        here, there = draw.sample([one, two], 2)
        deed = draw.choice([*SEEN, World.restore, *UNSEEN, None])
        if deed is None:
            here.lines = list(there.lines)
        else:
            deed(here)
        here.is_unseen |= deed in UNSEEN or deed is None
    assert wrong_lines(one, two) == []
    assert wrong_lines(two, one) == []


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_every_line_is_known_while_one_session_alone_writes_the_file(seed: int, steps: int) -> None:
    world = World(random.Random(seed))  # noqa: S311 - a history, not a secret
    world.session = lambda: "a"  # type: ignore[method-assign]
    world.turns["a"] = 1
    for _ in range(steps):
        world.random.choice([World.write, World.edit, World.edit])(world)
    told = line_origins(world.states, world.lines)
    assert {origin.answer for origin in told} <= {"agent"}


@pytest.mark.slow
def test_most_lines_of_agents_are_found_in_spite_of_what_no_call_shows() -> None:
    found = total = 0
    for seed in range(600):
        world = run(seed, 30, [*SEEN, *UNSEEN])
        assert wrong_lines(world) == [], seed
        for line, origin in zip(world.lines, line_origins(world.states, world.lines), strict=True):
            if PERSON not in world.writers[line.strip()]:
                total += 1
                found += origin.answer == "agent"
    assert found / total > 0.6
