"""The order of the files that a search found."""

from pagein.model.code_search import CodeFile
from pagein.policy.recall.file_matches import rank_files, words_of


def order(query: str, *files: tuple[str, int, int]) -> list[str]:
    return [one.path for one in rank_files(query, [CodeFile(path, path, hits, lines) for path, hits, lines in files])]


def test_words_of_names_and_expressions() -> None:
    assert words_of(r"/def parse_URLs\(HTTPServer2/") == {"def", "parse", "ur", "ls", "http", "server"}
    assert words_of("loginUser login-user") == {"login", "user"}


def test_more_hits_in_a_shorter_file_come_first() -> None:
    assert order("x", ("a.py", 1, 100), ("b.py", 9, 100)) == ["b.py", "a.py"]
    assert order("x", ("a.py", 2, 4000), ("b.py", 2, 40)) == ["b.py", "a.py"]


def test_words_of_the_query_in_the_path_count() -> None:
    assert order("login user", ("src/db.py", 3, 100), ("src/login.py", 2, 100)) == ["src/login.py", "src/db.py"]
    assert order("judge", ("a/judgement.py", 1, 100), ("a/other.py", 1, 100)) == ["a/judgement.py", "a/other.py"]


def test_tests_come_behind_what_they_test_unless_asked_for() -> None:
    files = (("tests/test_login.py", 5, 100), ("src/login.py", 1, 100))
    assert order("login", *files) == ["src/login.py", "tests/test_login.py"]
    assert order("test login", *files) == ["tests/test_login.py", "src/login.py"]


def test_equal_files_are_in_the_order_of_their_paths() -> None:
    assert order("x", ("b.py", 1, 1), ("a.py", 1, 1)) == ["a.py", "b.py"]
    assert order("x") == []
