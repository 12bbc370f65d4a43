"""The parts of the script that makes the demo session."""

import shutil
from pathlib import Path

import pytest
from scripts.demo_session.ledger import FLOOR_TOKENS, LIFETIME_SECONDS, Ledger
from scripts.demo_session.plain import Plain
from scripts.demo_session.screenplay import Deed, read_scene
from scripts.demo_session.tools import Tools

NOW = "2026-10-12T13:00:00+00:00"
needs_bash = pytest.mark.skipif(shutil.which("bash", path="/bin") is None, reason="needs /bin/bash")


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    (tmp_path / "poem.py").write_text("one\ntwo\ntwo\n", encoding="utf-8")
    return Tools(tmp_path, {"PATH": "/usr/bin:/bin"}, Plain(((str(tmp_path), "/repo"),)))


def test_a_read_has_the_gutter_and_tells_the_lines(tools: Tools) -> None:
    outcome = tools.run(Deed("Read", "poem.py", {"offset": 2, "limit": 1}), NOW)
    assert outcome.text == "     2→two"
    assert outcome.meta == {"start": 2, "lines": 1, "total_lines": 3}
    assert outcome.ops[0] == {"op": "read", "path": "poem.py", "start": 2, "end": 2, "via": "native"}


def test_an_edit_changes_the_file_and_shows_where(tools: Tools) -> None:
    outcome = tools.run(Deed("Edit", "poem.py", {"old": "one\n", "new": "zero\n"}), NOW)
    assert (tools.root / "poem.py").read_text(encoding="utf-8") == "zero\ntwo\ntwo\n"
    assert "     1→zero" in outcome.text


@pytest.mark.parametrize("old", ["three", "two"])
def test_an_edit_that_is_not_unique_stops_the_play_unless_it_is_expected(tools: Tools, old: str) -> None:
    options: dict[str, str | int | bool] = {"old": old, "new": "x"}
    with pytest.raises(ValueError, match=r"poem\.py"):
        tools.run(Deed("Edit", "poem.py", options), NOW)
    outcome = tools.run(Deed("Edit", "poem.py", options, fails=True), NOW)
    assert outcome.is_error
    assert (tools.root / "poem.py").read_text(encoding="utf-8") == "one\ntwo\ntwo\n"


@needs_bash
def test_a_command_that_ends_otherwise_than_expected_stops_the_play(tools: Tools) -> None:
    with pytest.raises(ValueError, match="exit status 3"):
        tools.run(Deed("Bash", "exit 3", {}), NOW)
    with pytest.raises(ValueError, match="exit status 0"):
        tools.run(Deed("Bash", "true", {}, fails=True), NOW)


@needs_bash
def test_the_output_of_a_command_names_no_folder_of_ours(tools: Tools) -> None:
    assert tools.run(Deed("Bash", "pwd -P", {}), NOW).text == "/repo"


@needs_bash
def test_long_output_loses_whole_lines_from_its_middle(tools: Tools) -> None:
    text = tools.run(Deed("Bash", "seq 1 9000", {}), NOW).text
    head, gap, tail = text.split("\n\n")
    shown = [*head.split("\n"), *tail.split("\n")]
    assert len(text) < 30_100
    assert (shown[0], shown[-1]) == ("1", "9000")
    assert gap == f"... [{9000 - len(shown)} lines truncated] ..."


def test_a_search_marks_hits_and_their_neighbours_apart(tools: Tools) -> None:
    outcome = tools.run(Deed("Grep", "one", {"mode": "content", "C": 1}), NOW)
    assert outcome.text == "poem.py:1:one\npoem.py-2-two"


def test_durations_addresses_and_versions_come_out_the_same(tmp_path: Path) -> None:
    plain = Plain(((str(tmp_path), "/repo"),))
    first = plain(f"{tmp_path}/a <x at 0x7f1234567890> Python 3.11.7\n=== 2 failed, 3 passed in 0.31s ===")
    again = plain(f"{tmp_path}/a <x at 0x7faaaabbbbcc> Python 3.11.9\n======= 2 failed, 3 passed in 12.90s =======")
    assert first == again
    assert first.startswith("/repo/a <x at 0x7f0000000000> Python 3.11\n")


def test_a_request_within_the_lifetime_reads_what_the_last_one_left() -> None:
    ledger = Ledger()
    first = ledger.bill(0.0, 285)
    ledger.add("x" * 2850)
    warm = ledger.bill(LIFETIME_SECONDS - 1, 1)
    cold = ledger.bill(2 * LIFETIME_SECONDS - 1, 1)
    assert (first["cache_read"], first["output"]) == (0, 100)
    assert first["input"] + first["cache_write"] == FLOOR_TOKENS
    assert warm["cache_read"] == first["cache_write"]
    assert warm["cache_write"] == 1000
    assert (cold["cache_read"], cold["cache_write"]) == (0, warm["cache_read"] + warm["cache_write"])


def test_a_deed_names_exactly_one_tool(tmp_path: Path) -> None:
    path = tmp_path / "1_scene.toml"
    path.write_text('user = "hi"\n[[step]]\nsay = "a"\n[[step]]\ndo = [{ Dance = "x" }]\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"1_scene\.toml, step 2"):
        read_scene(path)
