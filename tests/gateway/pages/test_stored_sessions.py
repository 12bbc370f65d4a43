"""The sessions of a store, as the page asks for them."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from pagein import wiring
from pagein.gateway.pages.stored_sessions import SessionArchive

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


def test_a_gateway_that_has_stored_nothing_tells_of_no_sessions_and_makes_no_store(tmp_path: Path) -> None:
    file = tmp_path / "project.pagein"
    archive = SessionArchive(lambda: closing(wiring.open_for_upkeep(file, workspace=tmp_path, looks=True)))
    before = archive.sessions(NOON)
    assert archive.calls("first") == []
    assert not file.exists()
    with closing(wiring.open_for_upkeep(file, workspace=tmp_path, new=True)) as store:
        assert not list(store.sessions())
    assert file.exists()
    after = archive.sessions(NOON)
    assert before == after
    assert (before["sessions"], before["pending"], before["more"], before["week"]["calls"]) == ([], 0, False, 0)
