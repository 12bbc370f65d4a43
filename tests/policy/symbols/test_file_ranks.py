from collections.abc import Mapping

import pytest

from pagein.model.symbols import Definition, FileSymbols
from pagein.policy.symbols.file_ranks import file_words, rank_files, score_files
from pagein.policy.symbols.lookup import names_in, similar_names
from pagein.policy.symbols.reference_counts import count_references
from pagein.policy.symbols.words import words_of


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("parseHTTPRequest", ("parse", "http", "request")),
        ("snake_case_names", ("snake", "case", "name")),
        ("src/gateway/http_access.py", ("src", "gateway", "http", "access", "py")),
        ("entries", ("entry",)),
        ("a1b22", ()),
        ("classes", ("class",)),
        ("stopping", ("stop",)),
        ("stopped", ("stop",)),
        ("gr\u00f6\u00dfe", ("gr", "\u00f6\u00df")),
    ],
)
def test_words(name: str, words: tuple[str, ...]) -> None:
    assert words_of(name) == words


def file(*names: str, refers: Mapping[str, int] | None = None) -> FileSymbols:
    definitions = tuple(
        Definition(name, name, "function", place, place, place, place, place, place)
        for place, name in enumerate(names, 1)
    )
    return FileSymbols("python", definitions, refers or {})


def test_references_count_between_files_and_only_for_names_that_say_something() -> None:
    files = {
        "a.py": file("run", "get", refers={"run": 9}),
        "b.py": file("own", "get", refers={"run": 2, "get": 5, "own": 1}),
        "c.py": file(refers={"run": 1, "own": 3}),
        **{f"g{number}.py": file("get") for number in range(4)},
    }
    found = count_references(files, names_in(files))
    assert dict(found.into) == {"a.py": 3, "b.py": 3}
    assert dict(found.out_of) == {"b.py": 2, "c.py": 4}
    assert found.names["run"] == 12


def test_rare_words_and_paths_weigh_most() -> None:
    files = {
        "store/index.py": file("read", "write"),
        "view.py": file("readStore", "draw"),
        "other.py": file("read", "nothing"),
    }
    words = {path: file_words(path, symbols) for path, symbols in files.items()}
    scores = score_files(words, words_of("how does the store read"))
    assert rank_files(files, scores, {}) == ["store/index.py", "view.py", "other.py"]
    assert rank_files(files, {}, {"other.py": 2}) == ["other.py", "store/index.py", "view.py"]


def test_similar_names_ignore_case() -> None:
    assert similar_names(["Server", "server", "serve", "x"], "sErver") == ("Server", "server", "serve")
