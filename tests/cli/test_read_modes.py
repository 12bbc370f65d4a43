"""`pagein read --mode`, as a person or a script runs it."""

import json
import os
import subprocess

import pytest
from tests.command_server import run_text_command

from pagein.testing.desk import Desk, numbered_text

SOURCE = "import os\n\n\ndef greet(name):\n    return f'hello {name}'\n"


def pagein(desk: Desk, *arguments: str, told: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PAGEIN_STORE": str(desk.store)}
    return run_text_command("read", *arguments, cwd=desk.folder, env=environment, typed=told)


def test_each_mode_prints_its_text_and_counts_as_seen(desk: Desk) -> None:
    pytest.importorskip("tree_sitter")
    desk.put("src/a.py", SOURCE)
    symbol = pagein(desk, "--mode", "symbol", "greet", "--path", "src", "--include-context", "-s", "s")
    assert (symbol.returncode, symbol.stderr) == (0, "")
    assert symbol.stdout.startswith("src/a.py:4-5 of 6, function greet, with context from line 1\nimport os\n")
    lines = pagein(desk, "--mode", "snippet", "src/a.py", "--start-line", "4", "--context-lines", "1", "-s", "s")
    assert lines.stdout.startswith("src/a.py:3-5 of 6\n\ndef greet(name):\n")
    found = pagein(desk, "--mode", "snippet", ".", "--pattern", "/def \\w+/")
    assert found.stdout == "1 match in 1 file\nsrc/a.py:4: def greet(name):\n"
    again = pagein(desk, "--mode", "file", "src/a.py", "-s", "s", "--limit", "5")
    assert "import os" not in again.stdout or "readcache" not in again.stdout


def test_a_session_remembers_and_none_is_forgotten(desk: Desk) -> None:
    desk.put("a.txt", numbered_text(60))
    for _ in range(2):
        assert pagein(desk, "--mode", "file", "a.txt").stdout == numbered_text(60)
    assert not desk.store.exists()
    assert pagein(desk, "--mode", "file", "a.txt", "-s", "s").stdout == numbered_text(60)
    assert pagein(desk, "--mode", "file", "a.txt", "-s", "s").stdout == "[readcache: unchanged, 61 lines]\n"
    assert pagein(desk, "--mode", "file", "a.txt", "-s", "s", "--bypass-cache").stdout == numbered_text(60)


def test_a_proposed_text_from_a_file_or_the_input(desk: Desk) -> None:
    desk.put("a.txt", "one\n")
    desk.put("b.txt", "two\n")
    by_file = pagein(desk, "--mode", "diff_preview", "a.txt", "--against", "WORKTREE", "--content", "b.txt")
    by_input = pagein(desk, "--mode", "diff_preview", "a.txt", "--against", "WORKTREE", "--content", "-", told="two\n")
    assert by_file.stdout == by_input.stdout
    assert by_file.stdout.endswith("--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n")


def test_json_is_the_contract_also_for_an_error(desk: Desk) -> None:
    desk.put("a.txt", "one\n")
    good = pagein(desk, "--mode", "file", "a.txt", "--json")
    told = json.loads(good.stdout)
    assert (good.returncode, told["ok"], told["text"], told["failure"]) == (0, True, "one\n", None)
    assert told["location"] == {"file": "a.txt", "line": 1, "end_line": 2}
    bad = pagein(desk, "--mode", "file", "b.txt", "--json")
    told = json.loads(bad.stdout)
    assert (bad.returncode, bad.stderr, told["ok"], told["error"]["code"]) == (1, "", False, "NOT_FOUND")
    wrong = pagein(desk, "--mode", "file", "a.txt", "--against", "HEAD", "--json")
    assert (wrong.returncode, json.loads(wrong.stdout)["error"]["code"]) == (1, "INVALID_ARGS")
    unknown = pagein(desk, "--mode", "ast_edit", "a.txt", "--json")
    assert (
        json.loads(unknown.stdout)["error"]["message"] == "'mode' must be one of: file, symbol, snippet, diff_preview"
    )


def test_an_error_is_one_message_on_stderr(desk: Desk) -> None:
    desk.put("a.txt", "one\n")
    done = pagein(desk, "--mode", "file", "b.txt")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pagein: NOT_FOUND: There is no file b.txt. Similar: a.txt.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.txt", "--pattern", "x", "-s", "s"], "pagein: --pattern needs --mode\n"),
        (
            ["a.txt"],
            "pagein: --session is missing: reading without --mode needs a session, such as --session fix-login\n",
        ),
        (
            ["--mode", "diff_preview", "a.txt", "--against", "snapshot:x@1"],
            "pagein: --session is missing: a stored version is looked for in the store of a session\n",
        ),
        (
            ["--mode", "diff_preview", "a.txt", "--content", "gone"],
            "pagein: gone: cannot be read as a proposed text: [Errno 2] No such file or directory: 'gone'\n",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(desk: Desk, arguments: list[str], said: str) -> None:
    desk.put("a.txt", "one\n")
    done = pagein(desk, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
