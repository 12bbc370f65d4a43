import gzip
import io
import lzma
import os
import pickle
import shutil
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from pagein.errors import BadInput
from pagein.replay.readers import SkippedSource, Source, find, read_source
from pagein.replay.readers.row_fields import seconds
from pagein.replay.record.recorded_session import SessionHead

Recorded = Callable[[str], list[tuple[SessionHead, list[Any]]]]


def _ids(sources: Iterable[Source | SkippedSource]) -> list[str]:
    return [session.head.id for source in sources if isinstance(source, Source) for session in read_source(source)]


def test_a_folder_gives_its_sessions_in_the_order_of_names_and_says_what_it_skipped(fixtures: Path) -> None:
    found = list(find([fixtures]))
    labels = [source.label for source in found if isinstance(source, Source)]
    assert labels == sorted(labels, key=lambda label: label.split("/"))
    assert "sessions/claude-project/cc-1/subagents/agent-a7f.jsonl" in labels
    skipped = {skip.file.rsplit("/", 1)[-1]: skip.reason for skip in found if isinstance(skip, SkippedSource)}
    assert skipped.keys() == {"binary.jsonl", "empty.jsonl", "not-a-session.jsonl", "unknown-schema.jsonl"}
    assert skipped["binary.jsonl"].startswith("a binary file")
    assert skipped["empty.jsonl"].startswith("an empty file")
    assert skipped["not-a-session.jsonl"].startswith("line 1: a line of no known format")
    assert "line 1: unknown schema 'pagein-session/7'" in skipped["unknown-schema.jsonl"]


def test_files_that_cannot_be_sessions_are_passed_over_in_silence(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# hello")
    (tmp_path / "LICENSE").write_text("MIT")
    (tmp_path / "agent-1.meta.json").write_text("{}")
    (tmp_path / "auth.json").write_text("{}")
    (tmp_path / ".credentials.json").write_text("{}")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "x.json").write_text("{}")
    assert list(find([tmp_path])) == []


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.ZstdCompressor().compress)],
)
def test_compressed_files_are_read_by_their_first_bytes(
    fixtures: Path, tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    plain = (fixtures / "codex.jsonl").read_bytes()
    (tmp_path / f"rollout.jsonl{suffix}").write_bytes(pack(plain))
    assert _ids(find([tmp_path])) == ["cx-1"]
    (tmp_path / f"rollout.jsonl{suffix}").rename(tmp_path / "other.jsonl")
    assert _ids(find([tmp_path])) == ["cx-1"]


def test_a_compressed_copy_beside_its_file_is_one_session(fixtures: Path, tmp_path: Path) -> None:
    shutil.copy(fixtures / "codex.jsonl", tmp_path / "r.jsonl")
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress((fixtures / "codex.jsonl").read_bytes()))
    assert _ids(find([tmp_path])) == ["cx-1"]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_members_of_an_archive_are_sources_that_workers_can_be_sent(fixtures: Path, tmp_path: Path, mode: str) -> None:
    archive = tmp_path / f"shop.tar{mode[1:].replace(':', '.')}"
    with tarfile.open(archive, mode) as tar:  # type: ignore[call-overload]
        for name in ("pi-v3.jsonl", "codex.jsonl", "empty.jsonl"):
            tar.add(fixtures / name, name)
        tar.addfile(tarfile.TarInfo("README.md"), io.BytesIO())
    one, two, empty = find([tmp_path])
    assert isinstance(one, Source)
    assert isinstance(two, Source)
    assert isinstance(empty, SkippedSource)
    assert [one.label, two.label] == [
        f"{tmp_path.name}/{archive.name}:{name}" for name in ("pi-v3.jsonl", "codex.jsonl")
    ]
    [session] = read_source(pickle.loads(pickle.dumps(one)))  # noqa: S301
    assert session.head.source == "shop"
    assert session.head.id == "pi-three"


def test_snapshots_beside_sessions_are_not_sessions(fixtures: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "shop.snapshots.tar.xz", "w:xz") as tar:
        tar.add(fixtures / "normalised.snapshots.jsonl", "shop.snapshots.jsonl")
    assert list(find([tmp_path])) == []
    [named] = find([tmp_path / "shop.snapshots.tar.xz"])
    assert isinstance(named, SkippedSource)
    assert "file snapshots" in named.reason


def test_damaged_archives_and_files_lose_what_is_damaged_only(fixtures: Path, tmp_path: Path) -> None:
    packed = gzip.compress((fixtures / "codex.jsonl").read_bytes() * 40)
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[:-20])
    (tmp_path / "bad.tar.gz").write_bytes(b"\x1f\x8b junk")
    (tmp_path / "bad.jsonl.gz").write_bytes(b"\x1f\x8b junk")
    found = list(find([tmp_path]))
    assert [type(item) for item in found] == [SkippedSource, SkippedSource, Source]
    [whole] = [item for item in found if isinstance(item, Source)]
    session = next(read_source(whole))
    assert session.head.flags["torn_tail"] is True


def test_a_path_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    [missing] = find([tmp_path / "nowhere"])
    assert isinstance(missing, SkippedSource)
    assert missing.reason == "no such file or folder"


def test_a_file_that_several_paths_lead_to_is_read_once(fixtures: Path, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    kept = tmp_path / "deep" / "one.jsonl"
    shutil.copy(fixtures / "pi-v3.jsonl", kept)
    (tmp_path / "link.jsonl").symlink_to(kept)
    found = list(find([kept, tmp_path, tmp_path / "deep" / ".." / "deep", kept]))
    assert [source.path for source in found if isinstance(source, Source)] == [kept]
    assert len(found) == 1


def test_links_that_lead_nowhere_or_in_circles_are_said_and_end(fixtures: Path, tmp_path: Path) -> None:
    shutil.copy(fixtures / "pi-v3.jsonl", tmp_path / "good.jsonl")
    (tmp_path / "circle").symlink_to(tmp_path)
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "gone")
    (tmp_path / "self.jsonl").symlink_to(tmp_path / "self.jsonl")
    (tmp_path / "notes").symlink_to(tmp_path / "gone")
    found = list(find([tmp_path]))
    assert [Path(source.label).name for source in found if isinstance(source, Source)] == ["good.jsonl"]
    skipped = {Path(skip.file).name: skip.reason for skip in found if isinstance(skip, SkippedSource)}
    assert skipped.keys() == {"dangling.jsonl", "self.jsonl"}


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_is_closed_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    [skip] = find([tmp_path])
    assert isinstance(skip, SkippedSource)
    assert "the folder cannot be read" in skip.reason


def test_a_pipe_is_refused_because_a_session_is_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (tmp_path / "pipe.jsonl", tmp_path):
        [skip] = find([path])
        assert isinstance(skip, SkippedSource)
        assert "save it to a file first" in skip.reason


def test_an_impossible_file_name_raises_no_exception(tmp_path: Path) -> None:
    [skip] = find([tmp_path / ("a" * 300)])
    assert isinstance(skip, SkippedSource)
    assert "cannot be read" in skip.reason


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_text_in_wide_letters_is_told_from_a_binary_file(fixtures: Path, encoding: str) -> None:
    content = (fixtures / "pi-v3.jsonl").read_text(encoding="utf-8").encode(encoding)
    with pytest.raises(BadInput, match="Save it as UTF-8"):
        list(read_source(Source("s.jsonl", content=content)))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1_767_225_600, 1_767_225_600.0),
        (1_767_225_600_000, 1_767_225_600.0),
        (1_767_225_600_000_000, 1_767_225_600.0),
        (1_767_225_600_000_000_000, 1_767_225_600.0),
        ("1767225600.5", 1_767_225_600.5),
        ("1767225600000", 1_767_225_600.0),
        ("2026-01-01T00:00:00Z", 1_767_225_600.0),
        ("2026-01-01T05:30:00+05:30", 1_767_225_600.0),
        ("2026-01-01 00:00:00", 1_767_225_600.0),
        (1e300, None),
        (-5, None),
        ("yesterday", None),
    ],
)
def test_times_are_read_as_hosts_write_them(written: object, meant: float | None) -> None:
    assert seconds(written) == meant


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("empty.jsonl", "empty.jsonl: an empty file"),
        ("binary.jsonl", "binary.jsonl: a binary file"),
        ("not-a-session.jsonl", "not-a-session.jsonl, line 1: a line of no known format"),
        ("unknown-schema.jsonl", "unknown-schema.jsonl, line 1: unknown schema"),
    ],
)
def test_reading_what_is_no_session_names_file_and_line(recorded: Recorded, name: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        recorded(name)
    assert str(refused.value).startswith(said)


def test_a_torn_document_is_refused_with_a_remedy(fixtures: Path) -> None:
    content = (fixtures / "opencode-export.json").read_bytes()[:-300]
    with pytest.raises(BadInput, match=r"x\.json: the JSON document is torn or damaged .* Export it again"):
        list(read_source(Source("x.json", content=content)))


def test_a_file_without_a_message_is_no_session() -> None:
    line = b'{"type":"summary","summary":"Basket","leafUuid":"a9"}\n'
    with pytest.raises(BadInput, match="line 1: a claude-code file without a message in it"):
        list(read_source(Source("s.jsonl", content=line)))


def test_lines_of_two_agents_in_one_file_become_two_sessions_that_say_so(recorded: Recorded) -> None:
    (one, first), (two, second) = recorded("mixed.jsonl")
    assert (one.agent, one.flags["mixed_file"], one.flags["first_line"]) == ("pi", True, 1)
    assert (two.agent, two.flags["mixed_file"], two.flags["first_line"]) == ("codex", True, 6)
    assert first
    assert second


def test_sessions_one_behind_the_other_are_split_at_their_headers(recorded: Recorded) -> None:
    assert [head.id for head, _ in recorded("two-sessions.jsonl")] == ["pi-three", "pi-one"]


def test_a_codex_rollout_that_holds_the_thread_it_was_forked_from_is_one_session(fixtures: Path) -> None:
    lines = (fixtures / "codex.jsonl").read_bytes()
    fork = (
        b'{"timestamp":"2026-03-02T10:00:00Z","type":"session_meta","payload":{"id":"cx-2","forked_from_id":"cx-1"}}\n'
    )
    [session] = read_source(Source("r.jsonl", content=fork + lines))
    assert session.head.id == "cx-2"
    assert session.head.flags["forked"] is True
    assert session.head.parent is None


def test_a_codex_thread_that_another_started_names_it(fixtures: Path) -> None:
    lines = (fixtures / "codex.jsonl").read_bytes().splitlines(keepends=True)
    meta = b'{"timestamp":"2026-03-02T10:00:00Z","type":"session_meta","payload":{"id":"cx-3","source":{"subagent":'
    meta += b'{"thread_spawn":{"parent_thread_id":"cx-1","depth":1}}}}}\n'
    [session] = read_source(Source("r.jsonl", content=meta + b"".join(lines[1:])))
    assert (session.head.id, session.head.parent, session.head.agent) == ("cx-3", "cx-1", "codex/subagent")
