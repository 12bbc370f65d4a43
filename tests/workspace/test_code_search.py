"""The search of a workspace's files: which files, which places, with ripgrep and without."""

import os
import re
import shutil
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pagein.errors import AbortedOperation, BadInput
from pagein.model.code_search import CodeQuery, CodeResults
from pagein.policy.recall.pattern_search import parse_pattern
from pagein.policy.recall.rust_patterns import rust_pattern
from pagein.workspace.code_search import CodeSearch
from pagein.workspace.ripgrep import files_with_matches, ripgrep_path

RG = shutil.which("rg", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
needs_ripgrep = pytest.mark.skipif(RG is None, reason="ripgrep is not installed")


def put(folder: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        file = folder / name.replace("__", "/").replace("_DOT_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def look(folder: Path, pattern: str, path: str | None = None, **more: int) -> CodeResults:
    return CodeSearch(str(folder), ripgrep=lambda: None).search(CodeQuery(pattern, path, **more))  # type: ignore[arg-type]


def places(found: CodeResults) -> list[tuple[str, int, int, str]]:
    return [(hit.path, hit.first, hit.column, hit.text) for hit in found.hits]


# --- which files ---


def test_what_git_ignores_and_what_holds_secrets_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, a_DOT_py="needle\n", out__b_DOT_py="needle\n", _DOT_env="needle\n", key_DOT_pem="needle\n")
    put(tmp_path, _DOT_gitignore="out/\n", node_modules__c_DOT_js="needle\n", _DOT_git__config="needle\n")
    (tmp_path / "plain.txt").symlink_to(tmp_path / ".env")
    opened: list[str] = []
    real = os.open

    def watch(path: str, *arguments: int) -> int:
        opened.append(os.path.relpath(path, tmp_path))
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", watch)
    found = look(tmp_path, "needle")
    assert [one.path for one in found.files] == ["a.py"]
    assert (".env", "excluded") in found.unsearched
    assert not {".env", "plain.txt", "key.pem", "out/b.py", "node_modules/c.js"} & set(opened)
    # a file named by its own path is searched even if git ignores it, as by ingest; a secret is not
    assert [one.path for one in look(tmp_path, "needle", "out/b.py").files] == ["out/b.py"]
    assert look(tmp_path, "needle", ".env").files == ()


def test_nothing_outside_of_the_workspace_is_searched(tmp_path: Path) -> None:
    put(tmp_path, outside_DOT_txt="needle\n", w__a_DOT_txt="needle\n")
    (tmp_path / "w/link.txt").symlink_to(tmp_path / "outside.txt")
    found = look(tmp_path / "w", "needle")
    assert [one.path for one in found.files] == ["a.txt"]
    assert found.unsearched == (("link.txt", "outside the workspace"),)
    assert look(tmp_path / "w", "needle", "../outside.txt").unsearched == (("../outside.txt", "outside the workspace"),)


def test_a_path_restricts_and_skipped_folders_are_left_out_unless_named(tmp_path: Path) -> None:
    put(tmp_path, a_DOT_py="needle", vendor__b_DOT_py="needle", src__c_DOT_py="needle", src__d_DOT_md="needle")
    search = CodeSearch(str(tmp_path), ripgrep=lambda: None)
    skipped = frozenset({"vendor"})
    assert [one.path for one in search.search(CodeQuery("needle", skipped=skipped)).files] == [
        "a.py",
        "src/c.py",
        "src/d.md",
    ]
    assert [one.path for one in search.search(CodeQuery("needle", "vendor/b.py", skipped=skipped)).files] == [
        "vendor/b.py"
    ]
    assert [one.path for one in search.search(CodeQuery("needle", "src/*.py")).files] == ["src/c.py"]
    assert search.search(CodeQuery("needle", "nowhere")).unsearched == (("nowhere", "no such file"),)


def test_binary_files_and_other_encodings_have_no_hits(tmp_path: Path) -> None:
    put(tmp_path, a_DOT_bin=b"needle\0", b_DOT_txt=b"needle \xff", c_DOT_txt="needle", d_DOT_txt="\ufeffneedle")
    found = look(tmp_path, "needle")
    assert [one.path for one in found.files] == ["c.txt", "d.txt"]
    assert (found.searched, found.not_text) == (2, 2), "what has no text was not searched"


@needs_ripgrep
def test_a_binary_file_counts_as_not_searched_with_ripgrep_too(tmp_path: Path) -> None:
    put(tmp_path, a_DOT_bin=b"other\0", b_DOT_bin=b"needle\0", c_DOT_txt="other", d_DOT_txt="needle")
    found = CodeSearch(str(tmp_path), ripgrep=lambda: RG).search(CodeQuery("needle"))
    assert (found.engine, found.searched, found.not_text) == ("rg", 2, 2)


def test_a_literal_is_found_in_paths_the_nearest_name_first(tmp_path: Path) -> None:
    put(
        tmp_path,
        src__login_DOT_py="x",
        src__db_DOT_py="login",
        login__x_DOT_py="x",
        a__relogin_DOT_py="x",
    )
    found = look(tmp_path, "Login")
    assert [one.path for one in found.named] == ["src/login.py", "a/relogin.py", "login/x.py"]
    assert [one.path for one in look(tmp_path, "src/login.py").named] == ["src/login.py"]
    assert look(tmp_path, "/login/").named == ()
    assert [one.path for one in look(tmp_path, "login").files] == ["src/db.py"], "what has hits is not named again"
    assert look(tmp_path, "db").named[0].path == "src/db.py"


# --- which places ---


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    put(tmp_path, a_DOT_txt="one\u2028two\x0cthree\r\nneedle\r\nx needle", b_DOT_txt="x\n\nneedle\n")
    assert places(look(tmp_path, "/needle$/")) == [
        ("a.txt", 2, 1, "needle"),
        ("a.txt", 3, 3, "x needle"),
        ("b.txt", 3, 1, "needle"),
    ]
    assert [hit.total for hit in look(tmp_path, "needle").hits] == [3, 3, 3]
    [whole] = look(tmp_path, "three\r\nneedle").hits
    assert (whole.first, whole.last) == (1, 2)


def test_a_line_is_reported_once_and_long_ones_are_shortened(tmp_path: Path) -> None:
    put(tmp_path, a_DOT_txt="a" * 5000 + "needle needle" + "b" * 5000)
    [hit] = look(tmp_path, "needle").hits
    assert (hit.column, hit.is_shortened) == (5001, True)
    assert "needle" in hit.text
    assert len(hit.text) < 500


def test_limits_of_hits_bytes_and_time_are_told(tmp_path: Path) -> None:
    put(tmp_path, a_DOT_txt="x\n" * 30, b_DOT_txt="x\n" * 20)
    found = look(tmp_path, "x", limit=8, per_file=5)
    assert (len(found.hits), found.total, [one.hits for one in found.files]) == (8, 50, [30, 20])
    few = look(tmp_path, "x", bytes=60)
    assert (few.is_partial, [one.path for one in few.files]) == (True, ["a.txt"])
    late = look(tmp_path, "x", seconds=-1)
    assert (late.is_partial, late.files) == (True, ())
    stop = threading.Event()
    stop.set()
    with pytest.raises(AbortedOperation):
        CodeSearch(str(tmp_path)).search(CodeQuery("x"), stop)


def test_a_large_file_is_searched_by_its_own_path_only(tmp_path: Path) -> None:
    put(tmp_path, a_DOT_txt="needle\n" * 1_200_000, b_DOT_txt="needle\n")
    found = look(tmp_path, "needle")
    assert ([one.path for one in found.files], found.unsearched) == (
        ["b.txt"],
        (("a.txt", "larger than 8 MB; name it by path"),),
    )
    assert [one.path for one in look(tmp_path, "needle", "a.txt").files] == ["a.txt"]


def test_an_unusable_pattern_says_so(tmp_path: Path) -> None:
    put(tmp_path, a_DOT_txt="(?=x)")
    found = look(tmp_path, "/(?=x)/")
    assert found.notice is not None
    assert found.total == 0
    with pytest.raises(BadInput):
        look(tmp_path, "")


WORDS = st.sampled_from([*"aékK_1 -.($É", "ab", "\t", "\r", "\x0b", "\u212a", "\u017f", "\xa0"])
LINES = st.lists(st.lists(WORDS, max_size=6).map("".join), max_size=8)
ATOMS = st.sampled_from(
    [
        *[
            r"a",
            r"b",
            r"k",
            r"é",
            r".",
            r"\d",
            r"\w",
            r"\W",
            r"\s",
            r"\S",
            r"\D",
            r"[ab]",
            r"[^ab]",
            r"[\w-]",
            r"[^\w]",
            r"[[:alpha:]]",
            r"\.",
            r"\(",
            r"\-",
            r"\<",
        ],
        *[r"(a|é)", r"(?:b)", r"(?i:k)", r"\x61", r"[é-ü]", r"[^k]", r"[]a]", r"[&&a]", r"a--b", r"\t"],
    ]
)
PARTS = st.tuples(ATOMS, st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?"])).map("".join)
EXPRESSIONS = st.tuples(
    st.sampled_from(["", "", "^", r"\b", r"\A"]),
    st.lists(PARTS, min_size=1, max_size=4).map("".join),
    st.sampled_from(["", "", "$", r"\b", r"\B", r"\z", "|a"]),
).map("".join)


@given(lines=LINES, literal=st.lists(WORDS, min_size=1, max_size=3).map("".join))
def test_the_places_of_a_literal_are_those_that_a_reader_finds(lines: list[str], literal: str) -> None:
    with TemporaryDirectory() as folder:
        Path(folder, "a.txt").write_bytes("\n".join(lines).encode())
        text = "\n".join(lines).replace("\r\n", "\n").split("\n")
        found = look(Path(folder), f"/{re.escape(literal)}/", per_file=100)
        expected = [(n, line.find(literal) + 1) for n, line in enumerate(text, 1) if literal in line]
        assert [(hit.first, hit.column) for hit in found.hits] == expected
        assert places(look(Path(folder), literal, per_file=100)) == places(found)


@given(
    lines=LINES,
    expression=st.lists(
        st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", "é", "(a|b)", " "]), min_size=1, max_size=4
    ).map("".join),
    ends=st.sampled_from(["", "^", "$"]),
)
def test_the_places_of_an_expression_are_those_of_another_engine(lines: list[str], expression: str, ends: str) -> None:
    expression = f"^{expression}" if ends == "^" else expression + ends
    with TemporaryDirectory() as folder:
        Path(folder, "a.txt").write_bytes("\n".join(lines).encode())
        text = "\n".join(lines).replace("\r\n", "\n").split("\n")
        found = look(Path(folder), f"/{expression}/", per_file=100)
        other = re.compile(expression, re.ASCII)
        expected = [(n, m.start() + 1) for n, line in enumerate(text, 1) if (m := other.search(line)) is not None]
        if not text[-1]:  # no line follows the last line feed
            expected = [one for one in expected if one[0] < len(text) or len(text) == 1]
        assert [(hit.first, hit.column) for hit in found.hits] == expected


# --- with ripgrep ---


@needs_ripgrep
@given(
    files=st.lists(
        LINES | LINES.map(lambda lines: ["\ufeff" + "".join(lines[:1]), *lines[1:]]), min_size=1, max_size=4
    ),
    expression=EXPRESSIONS,
    flags=st.sampled_from(["", "i", "s", "im"]),
)
@example(files=[["\ufeffdef f():"]], expression="^def", flags="")
@example(files=[["\ufeff", "a"]], expression="^$", flags="")
@example(files=[["\ufeffk"]], expression="^+k", flags="")
@example(files=[["k"]], expression="[^k]", flags="i")
@example(files=[["a<b"]], expression=r"\<", flags="")
@example(files=[["aéb"]], expression=r"a\Wb", flags="")
@example(files=[["aé"]], expression=r"a*?\B", flags="")
@example(files=[["foo\r"]], expression="foo$", flags="")
def test_ripgrep_changes_no_hit(files: list[list[str]], expression: str, flags: str) -> None:
    with TemporaryDirectory() as folder:
        for number, lines in enumerate(files):
            Path(folder, f"f{number}.txt").write_bytes("\n".join(lines).encode())
        query = CodeQuery(f"/{expression}/{flags}")
        own = CodeSearch(folder, ripgrep=lambda: None).search(query)
        with_rg = CodeSearch(folder, ripgrep=lambda: RG).search(query)
        assert (with_rg.files, with_rg.hits, with_rg.unsearched) == (own.files, own.hits, own.unsearched)


@needs_ripgrep
@given(
    files=st.lists(LINES, min_size=1, max_size=4),
    literal=st.lists(WORDS | st.just("\n"), min_size=1, max_size=4).map("".join),
)
def test_ripgrep_changes_no_hit_of_a_literal(files: list[list[str]], literal: str) -> None:
    with TemporaryDirectory() as folder:
        for number, lines in enumerate(files):
            Path(folder, f"f{number}.txt").write_bytes("\n".join(lines).encode())
        own = CodeSearch(folder, ripgrep=lambda: None).search(CodeQuery(literal))
        with_rg = CodeSearch(folder, ripgrep=lambda: RG).search(CodeQuery(literal))
        assert (with_rg.files, with_rg.hits) == (own.files, own.hits)


@needs_ripgrep
def test_the_answer_says_what_looked_and_the_users_configuration_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, a_DOT_py="needle\n", _DOT_ignore="*\n", config="--invert-match\n", u_DOT_txt=b"\xff\xfen\0e\0")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))
    search = CodeSearch(str(tmp_path), ripgrep=lambda: RG)
    found = search.search(CodeQuery(r"/need\w+/"))
    assert (found.engine, [one.path for one in found.files]) == ("rg", ["a.py"])
    assert search.search(CodeQuery(r"/\Aneedle/")).engine == "re2"


@needs_ripgrep
def test_only_files_with_a_match_are_opened(tmp_path: Path) -> None:
    assert RG is not None
    put(tmp_path, a_DOT_py="needle\n", b_DOT_py="other\n")
    files = [str(tmp_path / name) for name in ("a.py", "b.py")]
    assert files_with_matches(RG, parse_pattern("needle"), files, float("inf")) == frozenset(files[:1])
    assert files_with_matches(RG, parse_pattern("needle"), files * 2000, float("inf")) == frozenset(files[:1])
    assert files_with_matches(RG, parse_pattern("needle"), files, 0.0) in (None, frozenset(files[:1]))
    assert files_with_matches(str(tmp_path / "no-such"), parse_pattern("needle"), files, float("inf")) is None


def test_ripgrep_is_taken_from_the_path_only_by_an_absolute_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, rg="#!/bin/sh\n")
    (tmp_path / "rg").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".")
    assert ripgrep_path() is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ripgrep_path() == str(tmp_path / "rg")


@pytest.mark.parametrize(
    "expression", [r"\pL", r"\Qa\E", r"\z", r"\B", "(?i)a(?-i)b", "(?U:a)", "[a&&b]", r"[^\d]", "a{,2}", "\n", r"\C"]
)
def test_what_both_dialects_may_read_differently_is_not_given_to_ripgrep(expression: str) -> None:
    assert rust_pattern(expression) is None
