"""The pages of a large file are of one document, as long as its bytes are the same."""

from pagein.engine.reads.large_document import LargeDocument
from pagein.model.documents import Document

LARGE = b"one line of many\n" * 20_000


def _document(content: bytes = LARGE, path: str = "/w/a.txt") -> Document:
    return Document.of(content, path=path, key=path)


def test_the_same_bytes_are_met_once() -> None:
    met: list[Document] = []
    files = LargeDocument(met.append)
    first = files.remember(_document())
    assert files.remember(_document(LARGE[:1] + LARGE[1:])) is first
    assert met == [first]


def test_any_other_byte_or_path_is_another_document() -> None:
    met: list[Document] = []
    files = LargeDocument(met.append)
    shown = [files.remember(one) for one in (_document(), _document(LARGE[:-2] + b"!\n"), _document(path="/w/b.txt"))]
    assert [one.content[-2:] for one in shown] == [b"y\n", b"!\n", b"y\n"]
    assert met == shown
    assert len({one.hash for one in shown}) == 2


def test_small_files_and_files_of_many_megabytes_are_not_held() -> None:
    met: list[Document] = []
    files = LargeDocument(met.append)
    for content in (b"small\n", LARGE * 30):
        assert files.remember(_document(content)) is not files.remember(_document(content))
    assert len(met) == 4
