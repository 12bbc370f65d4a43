"""A process that opens a store twice keeps SQLite's locks on it, so that no other process takes the log away."""

import subprocess
import sys
from pathlib import Path

from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep

USE = "import sys; from pathlib import Path; from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep; s = SqliteUpkeep(Path(sys.argv[1])); s.put(b'b'); s.close()"


def test_another_process_leaves_the_log_of_a_store_that_was_opened_twice(tmp_path: Path) -> None:
    path = tmp_path / "one.pagein"
    first = SqliteStore(path)
    first.put(b"a")
    second = SqliteUpkeep(path)
    second.put(b"c")
    subprocess.run([sys.executable, "-c", USE, str(path)], check=True)  # noqa: S603 - our own command
    assert path.with_name(f"{path.name}-wal").exists()
    name = first.put(b"d")
    third = SqliteStore(path)
    assert third.has(name)
    for store in (first, second, third):
        store.close()
