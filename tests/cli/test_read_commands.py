"""`pagein read`, `pagein refresh` and `pagein reads`, as a person or a script runs them."""

import json
import os
import subprocess

import pytest
from tests.command_server import run_text_command

from pagein.testing.desk import Desk, numbered_text
from pagein.tools import read_commands


def pagein(desk: Desk, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_text_command(*arguments, cwd=desk.folder, env={**os.environ, "PAGEIN_STORE": str(desk.store)})


def test_a_second_read_of_a_named_session_is_answered_by_a_marker(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    first = pagein(desk, "read", "a.txt", "--session", "s")
    assert (first.returncode, first.stdout, first.stderr) == (0, numbered_text(60), "")
    assert pagein(desk, "read", "a.txt", "-s", "s").stdout == "[readcache: unchanged, 61 lines]\n"
    assert pagein(desk, "read", "a.txt:10-20", "-s", "s").stdout == "[readcache: unchanged in lines 10-20 of 61]\n"
    assert pagein(desk, "read", "a.txt", "-s", "s", "--bypass-cache").stdout == numbered_text(60)
    assert pagein(desk, "read", "a.txt", "-s", "another").stdout == numbered_text(60)


def test_a_refresh_from_the_command_line_holds_for_the_next_read(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    pagein(desk, "read", "a.txt", "-s", "s")
    done = pagein(desk, "refresh", "a.txt", "10-20", "-s", "s")
    assert done.stdout == "[readcache-refresh] invalidated lines 10-20 for a.txt\n"
    shown = pagein(desk, "read", "a.txt", "--offset", "10", "--limit", "11", "-s", "s").stdout
    assert shown.startswith("line 10 ::")
    assert (
        pagein(desk, "refresh", "a.txt", "-s", "s").stdout == "[readcache-refresh] invalidated full scope for a.txt\n"
    )
    assert pagein(desk, "read", "a.txt", "-s", "s").stdout == numbered_text(60)


def test_json_holds_the_answer_and_nothing_else(desk: Desk) -> None:
    desk.put("a.txt", "a\n")
    answer = json.loads(pagein(desk, "read", "a.txt", "-s", "s", "--json").stdout)
    assert {name: answer[name] for name in ("text", "is_error", "images", "failure")} == {
        "text": "a\n",
        "is_error": False,
        "images": [],
        "failure": None,
    }
    assert answer["details"]["readcache"]["mode"] == "full"
    status = json.loads(pagein(desk, "reads", "-s", "s", "--json").stdout)
    assert (status["session"], status["files"], status["modes"]) == ("s", 1, {"full": 1})
    assert status["store"]["blobs"] == 1


def test_the_status_is_told_in_lines(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    pagein(desk, "read", "a.txt", "-s", "s")
    pagein(desk, "read", "a.txt", "-s", "s")
    told = pagein(desk, "reads", "-s", "s").stdout.splitlines()
    assert told[:4] == [
        "[readcache-status]",
        "tracked scopes: 1 across 1 files",
        "replay window: 2 entries (start index 0)",
        "mode counts: full=1, unchanged=1, unchanged_range=0, diff=0, baseline_fallback=0",
    ]


def test_the_status_shows_budget_and_metrics_of_a_guarded_session(desk: Desk) -> None:
    desk.put("a.txt", "needle\n")
    pagein(desk, "search", "--code", "needle", "-s", "s")
    told = pagein(desk, "reads", "-s", "s").stdout
    assert "read budget (balanced): OK, 0 of 80 reads and 0 of 20000 new lines since it was restored\n" in told
    guards = json.loads(pagein(desk, "reads", "-s", "s", "--json").stdout)["guards"]
    assert (guards["profile"], guards["budget_state"], guards["reads_limit"]) == ("balanced", "OK", 80)
    assert guards["metrics"]["search_count"] == 1
    assert guards["metrics_of_all_branches"] == guards["metrics"]
    assert guards["search"] == {"query": "needle", "hits": 1, "files": 1}
    pagein(desk, "read", "--mode", "file", "a.txt", "-s", "s")
    told = pagein(desk, "reads", "-s", "s").stdout
    assert "consecutive reads: 1, of 2 lines\nlast search: 'needle', 1 hits, 1 files\n\n" in told
    table = [line.split() for line in told.partition("\n\n")[2].splitlines()]
    assert table[0] == ["metric", "branch", "all", "branches"]
    metrics = json.loads(pagein(desk, "reads", "-s", "s", "--json").stdout)["guards"]["metrics"]
    assert table[1:] == [[name, str(value), str(value)] for name, value in metrics.items()]
    assert list(metrics) == [
        "reads_count", "reads_lines_total", "reads_chars_total", "search_count", "read_after_search_ratio",
        "avg_read_span", "max_read_span", "preview_degraded_count",
    ]  # fmt: skip


def test_an_unreadable_file_ends_with_status_2_and_the_reason(desk: Desk) -> None:
    missing = pagein(desk, "read", "missing.txt", "-s", "s")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "ENOENT: no such file or directory" in missing.stderr
    assert pagein(desk, "read", "missing.txt").returncode == 2


def test_a_store_that_fails_is_told_of_and_read_around(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    desk.store.parent.mkdir()
    desk.store.write_bytes(b"no database" * 100)
    done = pagein(desk, "read", "a.txt", "-s", "s")
    assert (done.returncode, done.stdout) == (0, numbered_text(60))
    assert "as if there were no store" in done.stderr
    status = pagein(desk, "reads", "-s", "s")
    assert "object store: unavailable" in status.stdout
    assert "the store cannot be asked" in status.stderr


def test_a_refresh_that_cannot_be_kept_is_an_error_on_the_command_line(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    desk.store.parent.mkdir()
    desk.store.write_bytes(b"no database" * 100)
    done = pagein(desk, "refresh", "a.txt", "-s", "s")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing was refreshed: StoreError" in done.stderr
    assert json.loads(pagein(desk, "refresh", "a.txt", "-s", "s", "--json").stdout)["failure"] is not None


def test_a_session_without_a_name_is_refused(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    done = pagein(desk, "read", "a.txt", "-s", " ")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a session needs a name" in done.stderr


@pytest.mark.parametrize(
    ("token", "error"),
    [
        ("x", 'Invalid range token "x". Use <start> or <start>-<end>.'),
        ("3-", 'Invalid range token "3-". Use <start> or <start>-<end>.'),
        ("0", 'Invalid line number "0". Line numbers must be positive integers.'),
        ("8-2", 'Invalid range "8-2": end line must be greater than or equal to start line.'),
        ("9" * 5000, f'Invalid range token "{"9" * 5000}". Use <start> or <start>-<end>.'),
    ],
)
def test_a_malformed_range_of_lines_is_refused(desk: Desk, token: str, error: str) -> None:
    desk.put("a.txt", numbered_text(60))
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the text is the point
        read_commands.refresh(desk.session(), "a.txt", token)
    assert str(raised.value) == error


def test_a_single_line_number_reaches_to_the_end(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    answer = read_commands.refresh(desk.session(), "a.txt", "50")
    assert answer["text"] == "[readcache-refresh] invalidated lines 50-61 for a.txt"


def test_a_picture_is_told_by_its_type_and_size(desk: Desk) -> None:
    desk.put("a.png", b"\x89PNG\r\n\x1a\n" + bytes(22))
    answer = read_commands.read_file(desk.session(), "a.png")
    assert answer["images"] == [{"media_type": "image/png", "size": 40}]
