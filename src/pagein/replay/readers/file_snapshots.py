"""Whole files before recorded edits, stored beside the sessions of these edits."""

import tarfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from pagein.errors import BadInput
from pagein.model.messages import UnreadableLine
from pagein.replay.readers.row_fields import text
from pagein.replay.readers.rows import DAMAGE, decode, raw_lines
from pagein.replay.readers.source import Source


class FileSnapshots(Mapping[str, str]):
    """File contents by name, read from a single file at the first access. Raises BadInput for a damaged file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __getitem__(self, name: str) -> str:
        return self._contents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)

    @cached_property
    def _contents(self) -> dict[str, str]:
        return {} if self._path is None else dict(_pairs(self._path))


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    for source in _files(path):
        for item in raw_lines(source):
            row = item if isinstance(item, UnreadableLine) else decode(*item)
            if isinstance(row, UnreadableLine):
                continue
            name, content = text(row, "sha", "name"), text(row, "text")
            if name is not None and content is not None:
                yield name, content


def _files(path: Path) -> Iterator[Source]:
    if ".tar" not in path.name and not path.name.endswith(("tgz", "txz")):
        yield Source(path.name, path)
        return
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                stream = archive.extractfile(member)
                if stream is not None:
                    yield Source(f"{path.name}:{member.name}", content=stream.read())
    except (tarfile.TarError, *DAMAGE) as error:
        raise BadInput(f"{path}: the file snapshots cannot be read: {error}. Delete or replace the file") from error
