"""Handmade recorded sessions, and real ones if they are beside the checkout."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pagein.replay.readers import Source, find, read_source
from pagein.replay.record.recorded_session import SessionHead

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def fixtures() -> Path:
    return ROOT / "tests" / "fixtures" / "sessions"


@pytest.fixture(scope="session")
def corpus() -> Path:
    folder = ROOT.parent / "shared" / "corpus"
    if not folder.is_dir():
        pytest.skip("no recorded sessions beside the checkout")
    return folder


@pytest.fixture
def recorded(fixtures: Path) -> Callable[[str], list[tuple[SessionHead, list[Any]]]]:
    """The sessions of a fixture, with their entries."""

    def sessions(name: str) -> list[tuple[SessionHead, list[Any]]]:
        source = Source(name, fixtures / name)
        return [(session.head, list(session.entries)) for session in read_source(source)]

    return sessions


@pytest.fixture
def sources() -> Callable[[Path], list[Source]]:
    """All that a path holds, of which nothing may be skipped."""

    def found(path: Path) -> list[Source]:
        items = list(find([path]))
        kept = [item for item in items if isinstance(item, Source)]
        assert len(kept) == len(items), items
        return kept

    return found
