"""A file is read once, and an unreadable file is refused in the host's words."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import AbortedOperation, BadInput
from pagein.model.documents import TextLines
from pagein.model.names import ContentHash
from pagein.policy.reads.fitting_lines import count_fitting
from pagein.workspace.files import image_type, load_document

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def read(path: Path) -> str:
    return load_document(str(path), str(path)).text


def refusal(path: str) -> str:
    with pytest.raises(BadInput) as raised:
        load_document(path, path)
    return str(raised.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"a\n", b"a\r\nb\r\n", b"a\rb", b"\xef\xbb\xbfbom\n", b"a\0b\n", "\u2028\x0b\x85\n".encode()],
)
def test_text_is_exactly_its_bytes(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(content)
    document = load_document(str(file), "key")
    assert document.text.encode() == document.content == content
    assert document.hash == ContentHash.of(content)
    assert document.is_text
    assert (document.path, document.key) == (str(file), "key")


def test_a_trailing_newline_makes_one_more_line(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"a\nb\n")
    assert [*load_document(str(file), str(file)).lines] == ["a", "b", ""]
    file.write_bytes(b"")
    assert [*load_document(str(file), str(file)).lines] == [""]


def test_bytes_that_are_no_utf8_are_shown_with_replacements_and_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(bytes.fromhex("fffe00f8"))
    document = load_document(str(file), str(file))
    assert document.text == "\ufffd\ufffd\0\ufffd"
    assert not document.is_text
    assert document.hash == ContentHash.of(bytes.fromhex("fffe00f8"))


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a....", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", None),
        (b"\xff\xd8\xff\xf7rest", None),
        (b"GIF is a format", None),
        (b"", None),
        (b"%PDF-1.7", None),
    ],
)
def test_images_are_told_by_their_first_bytes(head: bytes, media_type: str | None) -> None:
    assert image_type(head) == media_type


def test_an_image_is_no_text_whatever_its_name(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(PNG)
    document = load_document(str(file), str(file))
    assert (document.media_type, document.is_text, document.text) == ("image/png", False, "")


def test_a_missing_file_is_refused_as_the_host_refuses_it(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.txt")
    assert refusal(missing) == f"ENOENT: no such file or directory, access '{missing}'"


def test_a_folder_is_refused_as_the_host_refuses_it(tmp_path: Path) -> None:
    assert refusal(str(tmp_path)) == "EISDIR: illegal operation on a directory, read"


def test_a_path_through_a_file_is_refused_as_the_host_refuses_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    through = str(tmp_path / "a.txt" / "b")
    assert refusal(through) == f"ENOTDIR: not a directory, access '{through}'"


def test_a_name_too_long_and_a_circle_of_links_are_refused(tmp_path: Path) -> None:
    long = str(tmp_path / ("n" * 300))
    assert refusal(long) == f"ENAMETOOLONG: name too long, access '{long}'"
    circle = tmp_path / "circle"
    circle.symlink_to("circle")
    assert refusal(str(circle)) == f"ELOOP: too many symbolic links encountered, access '{circle}'"


def test_a_nul_in_a_path_is_refused_and_does_not_crash() -> None:
    assert "without null bytes" in refusal("/a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("x")
    file.chmod(0)
    assert refusal(str(file)) == f"EACCES: permission denied, access '{file}'"


def test_a_pipe_nobody_writes_to_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refusal(str(pipe)) == f"Not a regular file: {pipe}"
    assert refusal("/dev/zero") == "Not a regular file: /dev/zero"


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"x" * 11)
    with pytest.raises(BadInput, match=r"File size \(11\) is greater than 10 bytes"):
        load_document(str(file), str(file), max_bytes=10)
    file.write_bytes(b"x" * 10)
    assert load_document(str(file), str(file), max_bytes=10).text == "x" * 10


def test_a_read_that_is_called_off_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("x")
    signal = threading.Event()
    assert load_document(str(file), str(file), signal).text == "x"
    signal.set()
    with pytest.raises(AbortedOperation, match=r"^Operation aborted$"):
        load_document(str(file), str(file), signal)


def test_a_read_called_off_between_two_chunks_stops_there(tmp_path: Path) -> None:
    class AfterOneChunk:
        asked = 0

        def is_set(self) -> bool:
            self.asked += 1
            return self.asked > 2

    file = tmp_path / "a.txt"
    file.write_bytes(b"x" * (9 * 1024 * 1024))
    signal = AfterOneChunk()
    with pytest.raises(AbortedOperation):
        load_document(str(file), str(file), signal)
    assert signal.asked == 3


def test_no_file_stays_open_after_a_refusal(tmp_path: Path) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(20):
        refusal(str(tmp_path))
    assert len(list(Path("/dev/fd").iterdir())) == before


@given(st.text("a\n", max_size=12), st.integers(0, 14), st.integers(0, 14), st.integers(0, 14))
def test_of_the_lines_that_begin_a_text_as_many_fit_as_of_all(text: str, start: int, stop: int, room: int) -> None:
    begun, every = TextLines(text).begun(start, stop, room), text.split("\n")[start:stop]
    fits = count_fitting(every, room)
    assert begun[:fits] == every[:fits]
    assert (count_fitting(begun, room), len(begun) > fits) == (fits, len(every) > fits)


@given(st.text("a\n", max_size=12), st.lists(st.tuples(st.integers(-14, 14), st.integers(-14, 14)), max_size=4))
def test_lines_that_are_split_as_they_are_asked_for_are_those_of_a_split(
    text: str, slices: list[tuple[int, int]]
) -> None:
    lines, every = TextLines(text), text.split("\n")
    for start, stop in slices:
        assert lines[start:stop] == every[start:stop]
        assert lines[start:stop:-1] == every[start:stop:-1]
        first, last, _ = slice(start, stop).indices(len(every))
        assert lines.joined(first, last) == "\n".join(every[first:last])
        if -len(every) <= start < len(every):
            assert lines[start] == every[start]
    assert ([*lines], len(lines)) == (every, len(every))
