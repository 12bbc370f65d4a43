"""The symbols of a workspace: what is parsed, what is not, and what becomes of files that fail."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.workspace.symbols.conftest import Write

from pagein.errors import AbortedOperation
from pagein.workspace.symbols import symbol_index
from pagein.workspace.symbols.crew import ParseOrder, ParserCrew
from pagein.workspace.symbols.stored_form import SymbolShelf
from pagein.workspace.symbols.symbol_index import SymbolIndex
from pagein.workspace.symbols.symbol_watch import SymbolWatch


class KeptParts:
    """A SymbolCache in memory that counts."""

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}
        self.writes = 0

    def load(self, part: int) -> bytes | None:
        return self.parts.get(part)

    def keep(self, part: int, data: bytes) -> None:
        self.writes += 1
        self.parts[part] = data


def fill(write: Write, count: int) -> None:
    for number in range(count):
        write(f"src/m{number}.py", f"def f{number}(): pass\n")


def test_only_what_has_changed_is_parsed(write: Write, index: SymbolIndex) -> None:
    fill(write, 20)
    assert index.refresh().parsed == 20
    assert index.refresh().parsed == 0
    changed = write("src/m3.py", "def g(): pass\n")
    scan = index.refresh()
    assert (scan.files, scan.parsed) == (20, 1)
    assert [one.name for one in index.state.files["src/m3.py"].definitions] == ["g"]
    changed.write_text("def h(): pass\n")
    write("src/m4.py", "def unseen(): pass\n")
    assert index.update([str(changed)]).parsed == 1
    assert [one.name for one in index.state.files["src/m3.py"].definitions] == ["h"]
    assert [one.name for one in index.state.files["src/m4.py"].definitions] == ["f4"]


def test_a_moved_file_is_not_parsed_again(write: Write, index: SymbolIndex, folder: Path) -> None:
    path = write("a.py", "def f(): pass\n")
    index.refresh()
    path.rename(folder / "b.py")
    assert index.update([str(path), str(folder / "b.py")]).parsed == 0
    assert list(index.state.files) == ["b.py"]


def test_a_folder_that_goes_and_comes(write: Write, index: SymbolIndex, folder: Path) -> None:
    fill(write, 3)
    write("srcs.py", "x = 1\n")
    index.refresh()
    (folder / "src").rename(folder / "lib")
    assert index.update([str(folder / "src")]).files == 1
    assert index.update([str(folder / "lib")]).files == 4
    assert list(index.state.files) == ["lib/m0.py", "lib/m1.py", "lib/m2.py", "srcs.py"]


def test_ignored_and_excluded_files_are_not_opened(write: Write, index: SymbolIndex, folder: Path) -> None:
    write(".gitignore", "out/\n*.gen.py\n")
    write("out/a.py", "def hidden(): pass\n")
    write("b.gen.py", "def hidden(): pass\n")
    write("node_modules/c.js", "function hidden() {}\n")
    secret = write(".env.py", "def hidden(): pass\n")
    os.link(secret, folder / "harmless.py")
    write("note.txt", "no code")
    write("d.py", "def shown(): pass\n")
    scan = index.refresh()
    assert list(index.state.files) == ["d.py"]
    assert (scan.files, scan.excluded, scan.other, scan.ignored, scan.failed) == (1, 2, 2, 2, ())
    ignored = [str(folder / name) for name in ("out/a.py", "b.gen.py", "node_modules/c.js", ".env.py", "harmless.py")]
    assert index.update(ignored).parsed == 0
    assert list(index.state.files) == ["d.py"]


def test_what_gitignore_says_anew_holds_at_once(write: Write, index: SymbolIndex) -> None:
    fill(write, 2)
    index.refresh()
    assert index.update([str(write(".gitignore", "m0.py\n"))]).files == 1


def test_what_cannot_be_parsed_is_told_and_costs_no_other_file(
    write: Write, index: SymbolIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(symbol_index, "LARGEST_FILE", 100)
    write("binary.py", b"\0\1")
    write("large.py", "x = 1\n" * 100)
    write("partial.py", "def f(): pass\ndef g(:\n")
    write("good.py", "def f(): pass\n")
    scan = index.refresh()
    assert scan.files == 2
    assert scan.failed == (("binary.py", "binary"), ("large.py", "larger than 0 MiB"))
    assert scan.partial == ("partial.py",)


def test_links_lead_out_of_the_folder_to_nothing(
    write: Write, index: SymbolIndex, tmp_path: Path, folder: Path
) -> None:
    (tmp_path / "outside.py").write_text("def outside(): pass\n")
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    write("own.py", "def own(): pass\n")
    index.refresh()
    assert list(index.state.files) == ["own.py"]
    assert index.update([str(folder / "link.py")]).files == 1


def test_symbols_are_kept_between_processes(write: Write, folder: Path) -> None:
    fill(write, 10)
    kept = KeptParts()
    with SymbolIndex(str(folder), cache=kept, jobs=1) as first:
        assert first.refresh().parsed == 10
    with SymbolIndex(str(folder), cache=kept, jobs=1) as second:
        assert second.refresh().parsed == 0
        assert second.state.files == first.state.files
        kept.writes = 0
        second.update([str(write("src/m1.py", "def g(): pass\n"))])
        assert kept.writes == 1
        second.refresh()
        assert kept.writes == 1


@pytest.mark.parametrize("damage", [b"", b"\x93", b"\x82\xa7made_by\xa1x\xa5files\x80"])
def test_damaged_and_foreign_parts_count_as_missing(write: Write, folder: Path, damage: bytes) -> None:
    fill(write, 4)
    kept = KeptParts()
    with SymbolIndex(str(folder), cache=kept, jobs=1) as first:
        first.refresh()
    kept.parts = dict.fromkeys(kept.parts, damage)
    assert SymbolShelf(kept).load() == {}
    with SymbolIndex(str(folder), cache=kept, jobs=1) as second:
        assert second.refresh().parsed == 4


def test_an_interrupted_look_keeps_what_it_has(write: Write, index: SymbolIndex) -> None:
    fill(write, 40)
    stop = threading.Event()

    def tell(done: int, _of: int) -> None:
        if done == 30:
            stop.set()

    with pytest.raises(AbortedOperation):
        index.refresh(stop, tell)
    scan = index.refresh()
    assert scan.files == 40
    assert scan.parsed < 40


def orders(*contents: tuple[str, bytes]) -> Iterator[ParseOrder]:
    for number, (language, content) in enumerate(contents):
        yield ParseOrder(str(number), "", language, content)


def test_a_process_that_dies_costs_the_file_that_it_parsed() -> None:
    crew = ParserCrew(1)
    answers = crew.parse(iter([*orders(("python", b"def f(): pass\n"))]))
    assert not isinstance(next(answers).answer, str)
    list(answers)
    process = crew._idle[0]._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)  # it takes the next file, and never answers
    threading.Timer(0.3, process.kill).start()
    found = {one.path: one.answer for one in crew.parse(orders(("python", b"x = 1\n"), ("python", b"def g(): pass\n")))}
    crew.close()
    assert isinstance(found["0"], str)
    assert not isinstance(found["1"], str)


def test_a_file_that_takes_too_long_is_given_up() -> None:
    crew = ParserCrew(1)
    list(crew.parse(orders(("python", b"x = 1\n"))))
    crew._seconds = 0.5
    process = crew._idle[0]._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    found = {one.path: one.answer for one in crew.parse(orders(("python", b"x = 1\n")))}
    crew.close()
    assert found["0"] == "parsing took too long"


def test_a_grammar_that_does_not_fit_costs_its_own_files() -> None:
    crew = ParserCrew(2)
    found = {one.path: one.answer for one in crew.parse(orders(("nonsense", b"x"), ("python", b"def g(): pass\n")))}
    crew.close()
    assert isinstance(found["0"], str)
    assert not isinstance(found["1"], str)


def test_no_process_is_left(write: Write, folder: Path) -> None:
    fill(write, 40)
    with SymbolIndex(str(folder), jobs=2) as index:
        index.refresh()
        (hand,) = index._crew._idle
        process = hand._process
        assert process is not None
        assert process.poll() is None
    assert process.poll() is not None


def test_the_watch_keeps_up_with_the_files(write: Write, index: SymbolIndex, folder: Path) -> None:
    fill(write, 3)
    watch = SymbolWatch(index)
    assert watch.start()
    assert len(index.state.files) == 3
    write("src/new.py", "def new(): pass\n")
    (folder / "src" / "m0.py").unlink()
    wait_for(lambda: list(index.state.files) == ["src/m1.py", "src/m2.py", "src/new.py"])
    assert watch.stop()
    assert watch.trouble is None


def wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_languages_of_an_extra_that_is_missing_are_other_languages(
    write: Write, index: SymbolIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.lua", "function f() end\n")
    assert index.refresh().files == 1
    monkeypatch.setattr(symbol_index, "has_breadth", lambda: False)
    scan = index.refresh()
    assert (scan.files, scan.other, scan.failed) == (0, 1, ())
