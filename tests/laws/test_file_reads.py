"""Laws of reading on real files, real stores and random sessions: the witness never objects, and nothing is lost."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.laws.reading_world import FILES, World

from pagein.policy.audit.witness import witness


@pytest.fixture
def worlds() -> Iterator[list[World]]:
    made: list[World] = []
    yield made
    for world in made:
        world.close()


@pytest.mark.damages_store
@pytest.mark.parametrize("seed", range(24))
def test_read_answers_of_random_sessions_are_proven_by_the_window(
    tmp_path: Path, worlds: list[World], seed: int
) -> None:
    world = World(random.Random(seed), tmp_path)  # noqa: S311 - a test's dice
    worlds.append(world)
    for _ in range(60):
        world.goes_on()
    for window in world.windows:
        assert witness(window.messages, window.claims, world.versions.get) == ()


@pytest.mark.parametrize("seed", range(8))
def test_a_check_of_random_sessions_finds_no_fault(tmp_path: Path, worlds: list[World], seed: int) -> None:
    world = World(random.Random(2000 + seed), tmp_path, may_lose=False)  # noqa: S311 - a test's dice
    worlds.append(world)
    for _ in range(60):
        world.goes_on()
    for window in world.windows:
        assert witness(window.messages, window.claims, world.versions.get) == ()
    # and what `pagein check` says is asserted behind every test (see `stores_are_sound`)


@pytest.mark.damages_store
@pytest.mark.parametrize("seed", range(6))
def test_the_same_branch_gives_the_same_answer_in_any_process(tmp_path: Path, worlds: list[World], seed: int) -> None:
    world = World(random.Random(1000 + seed), tmp_path)  # noqa: S311 - a test's dice
    worlds.append(world)
    for _ in range(40):
        world.goes_on()
    for number, window in enumerate(world.windows):
        here = window.session.fork(f"here-{number}")
        with world.opened() as engine:
            there = engine.session(window.session.name, workspace=world.folder).fork(f"there-{number}")
            for name in FILES:
                for lines in ((None, None), (3, 20)):
                    answers = here.read(name, *lines), there.read(name, *lines)
                    assert answers[0] == answers[1]
