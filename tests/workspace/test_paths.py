"""A path is understood as the host understands it, and a file has one key however it is reached."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from pagein.errors import BadInput
from pagein.policy.privacy.exclusions import EXCLUDED, is_excluded
from pagein.workspace.folder import Folder
from pagein.workspace.paths import (
    absolute,
    existing_path,
    lines_of_suffix,
    names_leading_to,
    parse_path,
    path_key,
    same_file,
    spell_path,
    spellings,
)


def put(folder: Path, name: str, text: str = "x\n") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_one_leading_at_sign_is_dropped_and_no_more() -> None:
    assert absolute("@a.txt", "/w") == "/w/a.txt"
    assert absolute("@@a.txt", "/w") == "/w/@a.txt"


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/h/me")
    assert absolute("~", "/w") == "/h/me"
    assert absolute("~/a.txt", "/w") == "/h/me/a.txt"
    assert absolute("@~/a.txt", "/w") == "/h/me/a.txt"
    assert absolute("~you/a.txt", "/w") == "/w/~you/a.txt"


@pytest.mark.parametrize("space", ["\u00a0", "\u2000", "\u200a", "\u202f", "\u205f", "\u3000"])
def test_unicode_spaces_become_plain_ones(space: str) -> None:
    assert absolute(f"a{space}b.txt", "/w") == "/w/a b.txt"


def test_other_space_like_characters_are_left_alone() -> None:
    assert absolute("a\u200bb\u1680c.txt", "/w") == "/w/a\u200bb\u1680c.txt"


def test_a_relative_path_is_folded_by_its_text_and_an_absolute_one_is_left_alone() -> None:
    assert absolute("missing/../a.txt", "/w") == "/w/a.txt"
    assert absolute("../../../a.txt", "/w") == "/a.txt"
    assert absolute("", "/w") == "/w"
    assert absolute("/w/missing/../a.txt", "/elsewhere") == "/w/missing/../a.txt"


@pytest.mark.parametrize(
    ("on_disk", "asked"),
    [
        ("Shot at 1.02.03\u202fPM.png", "Shot at 1.02.03 PM.png"),
        ("cafe\u0301.txt", "caf\u00e9.txt"),
        ("it\u2019s.txt", "it's.txt"),
        ("l\u2019e\u0301cran.txt", "l'\u00e9cran.txt"),
    ],
)
def test_a_missing_file_is_looked_for_as_macos_spells_it(tmp_path: Path, on_disk: str, asked: str) -> None:
    put(tmp_path, on_disk)
    assert existing_path(asked, str(tmp_path)) == str(tmp_path / on_disk)


def test_the_plain_spelling_wins_over_the_others(tmp_path: Path) -> None:
    put(tmp_path, "it\u2019s.txt")
    put(tmp_path, "it's.txt")
    assert existing_path("it's.txt", str(tmp_path)) == str(tmp_path / "it's.txt")


def test_the_other_spellings_are_tried_in_the_hosts_order() -> None:
    assert spellings("/w/l'\u00e9 1 PM.txt") == (
        "/w/l'\u00e9 1\u202fPM.txt",
        "/w/l'e\u0301 1 PM.txt",
        "/w/l\u2019\u00e9 1 PM.txt",
        "/w/l\u2019e\u0301 1 PM.txt",
    )


def test_a_file_that_is_nowhere_keeps_the_plain_spelling(tmp_path: Path) -> None:
    assert existing_path("no one's.txt", str(tmp_path)) == str(tmp_path / "no one's.txt")


def test_a_suffix_names_lines_of_a_file_that_exists(tmp_path: Path) -> None:
    put(tmp_path, "notes.txt")
    asked = parse_path("notes.txt:3-6", str(tmp_path))
    assert (asked.given, asked.absolute, asked.offset, asked.limit) == ("notes.txt", str(tmp_path / "notes.txt"), 3, 4)
    asked = parse_path("notes.txt:3", str(tmp_path))
    assert (asked.given, asked.offset, asked.limit) == ("notes.txt", 3, None)


def test_a_file_whose_name_ends_like_a_suffix_is_a_file(tmp_path: Path) -> None:
    put(tmp_path, "report:2024.txt")
    put(tmp_path, "log:3")
    put(tmp_path, "log")
    assert parse_path("report:2024.txt", str(tmp_path)).absolute == str(tmp_path / "report:2024.txt")
    asked = parse_path("log:3", str(tmp_path))
    assert (asked.given, asked.absolute, asked.offset) == ("log:3", str(tmp_path / "log:3"), None)


def test_explicit_lines_switch_the_suffix_off(tmp_path: Path) -> None:
    put(tmp_path, "notes.txt")
    asked = parse_path("notes.txt:3-6", str(tmp_path), limit=2)
    assert (asked.given, asked.offset, asked.limit) == ("notes.txt:3-6", None, 2)


@pytest.mark.parametrize("path", ["nothing.txt:3-6", ":3", "notes.txt:", "nothing.txt:x"])
def test_a_suffix_without_a_file_before_it_is_part_of_the_name(tmp_path: Path, path: str) -> None:
    put(tmp_path, "notes.txt")
    asked = parse_path(path, str(tmp_path))
    assert (asked.given, asked.absolute) == (path, str(tmp_path / path))


@pytest.mark.parametrize(
    ("suffix", "error"),
    [
        ("0", 'Invalid start line number "0". Line numbers must be positive integers.'),
        ("00", 'Invalid start line number "0". Line numbers must be positive integers.'),
        ("1-0", 'Invalid end line number "0". Line numbers must be positive integers.'),
        ("3-", 'Invalid range suffix "3-". Use :<start> or :<start>-<end>.'),
        ("-3", 'Invalid range suffix "-3". Use :<start> or :<start>-<end>.'),
        ("abc", 'Invalid range suffix "abc". Use :<start> or :<start>-<end>.'),
        ("\u0663", 'Invalid range suffix "\u0663". Use :<start> or :<start>-<end>.'),
        ("8-2", 'Invalid range "8-2": end line must be greater than or equal to start line.'),
        ("9" * 5000, f'Invalid range suffix "{"9" * 5000}". Use :<start> or :<start>-<end>.'),
    ],
)
def test_matrix_10_a_malformed_range_is_rejected(tmp_path: Path, suffix: str, error: str) -> None:
    put(tmp_path, "notes.txt")
    with pytest.raises(BadInput) as raised:
        parse_path(f"notes.txt:{suffix}", str(tmp_path))
    assert str(raised.value) == error


def test_a_suffix_gives_its_first_and_last_line() -> None:
    assert lines_of_suffix("7") == (7, None)
    assert lines_of_suffix("7-7") == (7, 7)


def test_links_and_dots_meet_in_one_key(tmp_path: Path) -> None:
    file = put(tmp_path, "src/a.txt")
    (tmp_path / "link.txt").symlink_to("src/a.txt")
    (tmp_path / "sub").symlink_to("src")
    keys = {path_key(str(tmp_path / way)) for way in ("src/a.txt", "link.txt", "sub/a.txt", "src/../src/a.txt")}
    assert keys == {os.path.realpath(file)}


def test_a_file_has_its_key_before_its_first_write(tmp_path: Path) -> None:
    (tmp_path / "sub").symlink_to(".")
    before = path_key(str(tmp_path / "sub/new.txt"))
    put(tmp_path, "new.txt")
    assert path_key(str(tmp_path / "new.txt")) == before


def test_a_circle_of_links_still_has_a_key(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert path_key(str(tmp_path / "a"))


def test_case_is_kept_where_the_file_system_minds_it(tmp_path: Path) -> None:
    put(tmp_path, "README.md")
    put(tmp_path, "Readme.md")
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("this file system does not mind case")
    assert path_key(str(tmp_path / "README.md")) != path_key(str(tmp_path / "Readme.md"))


class FoldingNames:
    """A file system that keeps the case of names and does not mind it, as those of macOS and Windows do."""

    def __init__(self, *paths: str) -> None:
        self.folders: dict[str, set[str]] = {}
        for path in paths:
            parts = path.strip("/").split("/")
            for depth, part in enumerate(parts):
                self.folders.setdefault("/" + "/".join(parts[:depth]), set()).add(part)
        self.listings = 0

    def same(self, first: str, second: str) -> bool:
        known = {
            "/".join([folder.rstrip("/"), name]).casefold() for folder, names in self.folders.items() for name in names
        }
        if not {first.casefold(), second.casefold()} <= known:
            raise FileNotFoundError(first)
        return first.casefold() == second.casefold()

    def list_folder(self, folder: str) -> Iterable[str]:
        self.listings += 1
        return self.folders[next(known for known in self.folders if known.casefold() == folder.casefold())]


def test_case_variants_meet_where_the_file_system_does_not_mind_case() -> None:
    names = FoldingNames("/Users/me/README.md")
    for way in ("/Users/me/README.md", "/users/ME/readme.md", "/USERS/me/Readme.MD"):
        assert spell_path(way, names) == "/Users/me/README.md"


def test_where_case_matters_no_folder_is_listed() -> None:
    class Strict(FoldingNames):
        def same(self, first: str, second: str) -> bool:
            if first != second:
                raise FileNotFoundError(second)
            return True

    names = Strict("/Users/me/README.md")
    assert spell_path("/Users/me/README.md", names) == "/Users/me/README.md"
    assert names.listings == 0


def test_a_part_that_does_not_exist_keeps_its_spelling() -> None:
    names = FoldingNames("/Users/me/README.md")
    assert spell_path("/users/me/New.md", names) == "/Users/me/New.md"


def test_hard_links_are_one_file_and_copies_are_two(tmp_path: Path) -> None:
    file, copy = put(tmp_path, "a.txt"), put(tmp_path, "copy.txt")
    (tmp_path / "b.txt").hardlink_to(file)
    known = [str(copy), str(file)]
    assert same_file(str(tmp_path / "b.txt"), known) == str(file)
    assert same_file(str(copy), [str(file)]) is None
    assert same_file(str(tmp_path / "missing.txt"), known) is None


@pytest.mark.parametrize(
    "name",
    [".env", ".env.local", ".ENV", "server.key", "cert.PEM", "a.p12", "a.pfx", "ca.crt", "id_rsa", "id_ed25519", ".npmrc", ".netrc"],
)  # fmt: skip
def test_secret_names_are_excluded(name: str) -> None:
    assert is_excluded(f"/w/{name}")


@pytest.mark.parametrize("name", ["env.py", "key.txt", "monkey.py", "id_rsa.md", "npmrc", "a.env"])
def test_other_names_are_not(name: str) -> None:
    assert not is_excluded(f"/w/.env/{name}")


def test_exclusions_are_settings() -> None:
    assert is_excluded("/w/Plan.SECRET", ("*.secret",))
    assert not is_excluded("/w/.env", ("*.secret",))
    assert ".env*" in EXCLUDED


def test_an_empty_list_excludes_nothing() -> None:
    assert not is_excluded("/w/.env", ())
    assert not is_excluded("/w/", ())


def test_a_link_does_not_publish_the_secret_behind_it(tmp_path: Path) -> None:
    put(tmp_path, "vault/plain.txt")
    (tmp_path / ".env").symlink_to("vault/plain.txt")
    (tmp_path / "notes.txt").symlink_to(".env")
    way = str(tmp_path / "notes.txt")
    named = names_leading_to(way, path_key(way))
    assert [Path(name).name for name in named] == ["notes.txt", ".env", "plain.txt", "plain.txt"]
    folder = Folder(str(tmp_path))
    assert folder.locate("notes.txt").excluded
    assert not folder.locate("vault/plain.txt").excluded
    assert not Folder(str(tmp_path), excluded=("*.secret",)).locate("notes.txt").excluded
