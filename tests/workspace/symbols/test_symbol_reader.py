"""Definitions read by their names, and the symbol map."""

import pytest
from tests.workspace.symbols.conftest import Write

from pagein.errors import BadInput
from pagein.model.symbols import AmbiguousSymbol, SymbolText, UnknownSymbol
from pagein.workspace.symbols.symbol_index import SymbolIndex
from pagein.workspace.symbols.symbol_reader import SymbolReader

APP = """import os
from near import (
    a,
)

class Server(
    Base,
):
    limit = 3

    # Starts it.
    @logged
    def start(self, port: int) -> None:
        return a(port)

def start():
    return Server().start(1)
"""


@pytest.fixture
def reader(write: Write, index: SymbolIndex) -> SymbolReader:
    write("src/app.py", APP)
    write("src/other.py", "from app import Server\n\ndef stop(): Server().start(2)\n")
    write("web/app.ts", "export class Page { start() { return 1; } }\n")
    index.refresh()
    return SymbolReader(index)


def text(answer: object) -> SymbolText:
    assert isinstance(answer, SymbolText)
    return answer


@pytest.mark.parametrize(
    "name", ["Server.start", "app.Server.start", "Server::start", "src/app.py#Server.start", "Server.start()"]
)
def test_a_definition_by_its_names(reader: SymbolReader, name: str) -> None:
    found = text(reader.read(name))
    assert (found.symbol.id, found.first, found.last) == ("src/app.py#Server.start", 11, 14)
    assert found.text == "\n".join(APP.split("\n")[10:14])
    assert found.signature == "def start(self, port: int) -> None"
    assert found.symbol.definition.first == 13


def test_context_is_the_imports_and_the_headers_around(reader: SymbolReader) -> None:
    found = text(reader.read("Server.start", include_context=True))
    assert found.context == tuple((line, APP.split("\n")[line - 1]) for line in (1, 2, 3, 4, 6, 7, 8))


def test_a_name_that_may_mean_several_lists_them(reader: SymbolReader) -> None:
    found = reader.read("start")
    assert isinstance(found, AmbiguousSymbol)
    assert [(one.id, one.first, one.last, one.signature) for one in found.candidates] == [
        ("src/app.py#Server.start", 13, 14, "def start(self, port: int) -> None"),
        ("src/app.py#start", 16, 17, "def start()"),
        ("web/app.ts#Page.start", 1, 1, "start()"),
    ]
    assert text(reader.read("start", path="web")).symbol.id == "web/app.ts#Page.start"
    assert text(reader.read("src/app.py#start")).first == 16


def test_overloads_have_ids_of_their_own(write: Write, reader: SymbolReader, index: SymbolIndex) -> None:
    write("o.ts", "function f(a: string): void;\nfunction f(a: any) {}\n")
    index.refresh()
    found = reader.read("f")
    assert isinstance(found, AmbiguousSymbol)
    assert [one.id for one in found.candidates] == ["o.ts#f", "o.ts#f~2"]
    assert text(reader.read("o.ts#f~2")).first == 2


def test_unknown_is_told_with_what_was_looked_at(write: Write, reader: SymbolReader, index: SymbolIndex) -> None:
    write("broken.py", b"\0")
    index.refresh()
    found = reader.read("Sever")
    assert isinstance(found, UnknownSymbol)
    assert found.similar == ("Server",)
    assert (found.scan.files, found.scan.failed) == (3, (("broken.py", "binary"),))
    assert isinstance(reader.read(""), UnknownSymbol)
    with pytest.raises(BadInput):
        reader.read("start", path="[z-a]")


def test_what_is_read_is_in_the_file_now(write: Write, reader: SymbolReader) -> None:
    write("src/app.py", "# moved\n" + APP.replace("port: int", "port: str"))
    found = text(reader.read("Server.start"))
    assert (found.first, found.signature) == (12, "def start(self, port: str) -> None")
    write("src/app.py", "x = 1\n")
    assert isinstance(reader.read("Server.start"), UnknownSymbol)
    write("src/app.py", "").unlink()
    assert isinstance(reader.read("x"), UnknownSymbol)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_text_is_exact(write: Write, reader: SymbolReader, index: SymbolIndex, end: str) -> None:
    write("e.py", b"\xef\xbb\xbf" + end.join(["def z():", "    return '\u2028'", "", "y = 1"]).encode())
    index.refresh()
    expected = f"\ufeffdef z():{end}    return '\u2028'" + ("\r" if end == "\r\n" else "")
    assert text(reader.read("z")).text == expected
    assert (text(reader.read("y")).first, text(reader.read("y")).text) == (4, "y = 1")


def test_the_map_has_a_block_for_each_file(reader: SymbolReader) -> None:
    found = reader.map()
    assert found.is_whole
    assert [one.path for one in found.blocks] == ["src/app.py", "web/app.ts", "src/other.py"]
    assert found.blocks[0].text == (
        "src/app.py <-3 ->0\n"
        "  imports os, near\n"
        "  6: class Server( Base, )\n"
        "    9: limit = 3\n"
        "    13: def start(self, port: int) -> None\n"
        "  16: def start()"
    )
    assert found.blocks[2].text == "src/other.py <-0 ->3\n  imports app\n  3: def stop()"


def test_a_question_ranks_the_map_and_a_bound_cuts_it(reader: SymbolReader) -> None:
    assert reader.map("stopping").blocks[0].path == "src/other.py"
    assert reader.map("web pages").blocks[0].path == "web/app.ts"
    cut = reader.map(characters=70)
    assert not cut.is_whole
    assert cut.blocks[0].text == "src/app.py <-3 ->0\n  imports os, near\n  ... 4 more lines"
    assert reader.map(path="src", without=["src/app.py"]).blocks[0].path == "src/other.py"
    assert reader.map(characters=5).blocks == ()


def test_the_map_shows_changed_files_as_they_are(write: Write, reader: SymbolReader) -> None:
    write("src/other.py", "def later(): pass\n")
    assert "later" in reader.map(path="src/other.py").blocks[0].text
