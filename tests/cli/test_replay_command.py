import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from pagein import __version__
from pagein.model.bill import Bill, DecisionRow, Doctor, Figures, SessionBill, Spread, Why
from pagein.replay.session_bill import POLICIES


class Ran(Protocol):
    """What the fixture `run` returns."""

    status: int
    out: str
    err: str


Run = Callable[..., Ran]


def test_a_session_is_told_in_words_and_tables(run: Run, session: Path) -> None:
    ran = run("replay", session)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("This session cost ")
    assert "\nWhy" not in ran.out
    assert "0 bytes were lost" in " ".join(ran.out.split())
    assert all(f"\n{policy} " in ran.out for policy in POLICIES)


def test_json_is_one_object_of_the_documented_shape_and_nothing_else(run: Run, session: Path) -> None:
    ran = run("replay", session, "--json")
    bill = json.loads(ran.out)
    assert (ran.status, ran.err, ran.out.count("\n")) == (0, "", 1)
    assert set(bill) == set(Bill.__annotations__)
    assert (bill["why"], bill["doctor"]) == ([], None)
    assert list(bill["policies"]) == list(POLICIES)
    assert all(set(figures) == set(Figures.__annotations__) for figures in bill["policies"].values())
    assert bill["policies"]["pagein"]["unrecoverable_bytes"] == 0
    assert bill["policies"]["pagein"]["stubs"] > 0
    (one,) = bill["per_session"]
    assert set(one) == set(SessionBill.__annotations__)
    assert (bill["prices"], one["title"]) == ("own", "tidy the parser")
    assert one["policies"]["append"]["usd"] > 0
    assert set(bill["spread"]["append"]) == set(Spread.__annotations__)


def test_a_report_is_written_beside_json(run: Run, session: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "report.html"
    picture = tmp_path / "bill.svg"
    ran = run("replay", session, "--json", "--html", target, "--picture", picture)
    json.loads(ran.out)
    assert (ran.status, ran.err) == (0, f"report written to {target}\npicture written to {picture}\n")
    assert "with pagein" in picture.read_text(encoding="utf-8")
    assert "tidy the parser" in target.read_text(encoding="utf-8")


def test_chosen_policies_come_with_the_baseline_only(run: Run, session: Path) -> None:
    bill = json.loads(run("replay", session, "--json", "--policy", "clear").out)
    assert set(bill["policies"]) == {"append", "clear"}


def test_pagein_without_a_layer_is_one_more_row(run: Run, session: Path) -> None:
    ran = run("replay", session, "--policy", "pagein", "--without", "birth", "--without", "epochs,cold")
    assert all(f"\n{name} " in ran.out for name in ("append", "pagein", "without-birth", "without-epochs+cold"))


def test_layouts_are_rows_beside_the_baseline_and_say_so(run: Run, session: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    ran = run("replay", session, "--layout", "pooled,tiered", "--json", "--html", page)
    policies = json.loads(ran.out)["policies"]
    assert {name: row["layout"] for name, row in policies.items()} == {
        "append": "inline",
        "pooled": "pooled",
        "pooled-spec": "pooled",
        "tiered": "tiered",
    }
    assert ">layout</th>" in page.read_text(encoding="utf-8")


def test_why_is_told_on_request_in_words_and_in_json(run: Run, session: Path) -> None:
    chosen = ("replay", session, "--policy", "pagein")
    told = run(*chosen, "--why").out
    assert "\nWhy" in told
    (why,) = json.loads(run(*chosen, "--json", "--why").out)["why"]
    assert set(why) == set(Why.__annotations__)
    assert all(set(one) == set(DecisionRow.__annotations__) for one in why["decisions"])
    assert why["decisions"] or why["idle"]


def test_the_cache_doctor_comes_on_request_in_words_and_in_json(run: Run, session: Path) -> None:
    chosen = ("replay", session, "--policy", "pagein")
    assert "Cache doctor: " in run(*chosen, "--doctor").out
    doctor = json.loads(run(*chosen, "--json", "--doctor").out)["doctor"]
    assert set(doctor) == set(Doctor.__annotations__)


def test_another_baseline_is_what_ratios_are_taken_against(run: Run, session: Path) -> None:
    ran = run("replay", session, "--policy", "append-1h", "--baseline", "none")
    assert " at list prices under none." in ran.out
    assert json.loads(run("replay", session, "--json", "--baseline", "none").out)["baseline"] == "none"


def test_quiet_prints_the_verdict_alone(run: Run, session: Path) -> None:
    out = run("replay", session, "--quiet").out
    assert out.startswith("This session cost ")
    assert "vs optimum" not in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--layout", "inline,round"], "there is no layout 'round'; the layouts are inline, pooled, tiered"),
        (["--policy", "magic"], "there is no policy 'magic'; the policies are none, append,"),
        (["--baseline", "magic"], "there is no policy 'magic'"),
        (["--without", "magic"], "there is no layer 'magic'; the layers are birth, "),
        (["--preset", "thrifty"], "--preset goes with --without; the preset as a whole is --policy pagein-thrifty"),
        (["--prices", "no-such-model"], "no-such-model"),
        (["--prices", "generic:z=1"], "generic:z=1"),
        (["--html", "."], "is a folder; name a file in it"),
    ],
)
def test_an_invalid_value_of_an_option_is_refused_with_the_valid_ones(
    run: Run, session: Path, arguments: list[str], told: str
) -> None:
    ran = run("replay", session, *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("pagein: ")
    assert told in ran.err
    assert "Traceback" not in ran.err


def test_a_replay_without_usable_files_exits_with_2_and_a_reason_for_each(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "binary.jsonl").write_bytes(bytes(range(256)) * 9)
    (folder / "other.jsonl").write_text('{"hello": 1}\n{"hello": 2}\n')
    ran = run("replay", folder)
    assert (ran.status, ran.out) == (2, "")
    assert all(name in ran.err for name in ("empty.jsonl", "binary.jsonl", "other.jsonl"))
    assert "Traceback" not in ran.err


def test_a_replay_without_usable_files_prints_one_json_object_with_reasons(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    ran = run("replay", tmp_path / "empty.jsonl", "--json")
    bill = json.loads(ran.out)
    assert ran.status == 2
    assert bill["sessions"] == 0
    assert len(bill["skipped"]) == 1


def test_a_bad_file_does_not_stop_the_others(run: Run, session: Path) -> None:
    (session.parent / "torn.jsonl").write_text('{"kind":"sess')
    ran = run("replay", session.parent, "--policy", "append")
    assert ran.status == 0
    assert "Skipped: 1 file" in ran.out
    assert "torn.jsonl" in ran.out


def test_a_missing_path_is_named(run: Run, tmp_path: Path) -> None:
    ran = run("replay", tmp_path / "nowhere.jsonl")
    assert (ran.status, ran.out) == (2, "")
    assert "nowhere.jsonl" in ran.err


def test_no_line_of_a_table_is_wider_than_the_terminal_says(run: Run, session: Path) -> None:
    out = run("replay", session, COLUMNS="64").out
    assert max(map(len, out.splitlines())) <= 64


@pytest.mark.parametrize("columns", ["0", "x", "999999999"])
def test_an_invalid_terminal_width_costs_no_table(run: Run, session: Path, columns: str) -> None:
    out = run("replay", session, "--policy", "pagein", COLUMNS=columns).out
    assert "\npagein " in out
    assert max(map(len, out.splitlines())) <= 1000


@pytest.mark.parametrize("option", ["--json", "--stress"])
@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
def test_a_full_disk_behind_stdout_is_a_message(session: Path, option: str) -> None:
    command = [sys.executable, "-m", "pagein", "replay", str(session), option, "--policy", "append"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - our own
    assert done.returncode == 2
    assert done.stderr.startswith("pagein: cannot write to standard output: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_closed_stream_is_no_reason_to_fail(session: Path, closed: str) -> None:
    command = f'exec "$0" -m pagein replay "$1" --quiet --policy append {closed}>&-'
    done = subprocess.run(["sh", "-c", command, sys.executable, session], capture_output=True, text=True, check=False)  # noqa: S603, S607 - our own
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_the_same_file_by_two_paths_is_one_session(run: Run, session: Path) -> None:
    ran = run("replay", session, session.parent, "--json", "--policy", "append")
    assert json.loads(ran.out)["sessions"] == 1


@pytest.mark.parametrize("prices", ["generic:out=1e308", "generic:in=1e300", "generic:window=0"])
def test_prices_beyond_all_measure_are_refused(run: Run, session: Path, prices: str) -> None:
    ran = run("replay", session, "--prices", prices)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"pagein: prices '{prices}'")


def test_a_pipe_gets_no_colours(run: Run, session: Path) -> None:
    assert "\x1b" not in run("replay", session).out


def test_an_encoding_that_lacks_a_letter_costs_only_that_letter(run: Run, session: Path) -> None:
    shutil.copy(session, session.parent / "größe.jsonl")
    ran = run(
        "replay",
        session.parent,
        "--sessions",
        "--policy",
        "pagein",
        PYTHONIOENCODING="ascii",
        PYTHONUTF8="0",
        LC_ALL="C",
    )
    assert ran.status == 0


def test_without_arguments_and_sessions_the_message_says_what_was_looked_for(run: Run) -> None:
    ran = run("replay")
    assert (ran.status, ran.out) == (2, "")
    assert "no recorded session of Claude Code, codex, pi, opencode, Gemini CLI or Copilot CLI was found" in ran.err


def test_without_arguments_and_without_a_terminal_the_own_sessions_are_listed(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".claude" / "projects" / "x"
    folder.mkdir(parents=True)
    lines = [
        {
            "type": "user",
            "uuid": "u1",
            "parentUuid": None,
            "sessionId": "s",
            "timestamp": "2026-03-01T09:00:00Z",
            "cwd": "/repo",
            "message": {"role": "user", "content": "tidy the parser"},
        },
        {
            "type": "assistant",
            "uuid": "a1",
            "parentUuid": "u1",
            "sessionId": "s",
            "timestamp": "2026-03-01T09:00:05Z",
            "message": {
                "id": "m1",
                "role": "assistant",
                "model": "claude-opus-4-6",
                "content": [{"type": "text", "text": "Done."}],
                "usage": {"input_tokens": 10, "output_tokens": 2},
            },
        },
    ]
    (folder / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = run("replay")
    assert (ran.status, ran.out) == (2, "")
    assert "name the sessions to replay, for example: pagein replay " in ran.err
    assert "s.jsonl" in ran.err


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").out == f"pagein {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["replay", "--help"], ["replay", "-h"]])
def test_help_has_examples(run: Run, arguments: list[str]) -> None:
    ran = run(*arguments)
    assert ran.status == 0
    assert "Example" in ran.out


def test_an_unknown_option_is_status_two(run: Run) -> None:
    ran = run("replay", "--frobnicate")
    assert (ran.status, ran.out) == (2, "")


@dataclass(frozen=True, slots=True)
class AtWork:
    """A replay of many sessions that is at one of them now. scratch: the folder of its temporary files."""

    process: "subprocess.Popen[bytes]"
    scratch: Path

    def ended(self, number: signal.Signals) -> tuple[int, bytes, bytes]:
        """Send it a signal. Its status and what it wrote."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=120)  # would wait for workers that hold the pipe open
        return self.process.returncode, out, err


@contextmanager
def at_work(session: Path, scratch: Path, *options: str) -> Iterator[AtWork]:
    for number in range(150):
        shutil.copy(session, session.parent / f"copy-{number}.jsonl")
    scratch.mkdir()
    command = [sys.executable, "-m", "pagein", "replay", str(session.parent), *options]
    with subprocess.Popen(  # noqa: S603 - our own
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch)},
        start_new_session=True,
    ) as process:
        try:
            while not list(scratch.glob("*/*")):  # of the workers' folder, what the first of them made in it
                assert process.poll() is None
                time.sleep(0.01)
            yield AtWork(process, scratch)
        finally:
            process.kill()


@pytest.mark.slow
def test_a_terminated_replay_leaves_no_files_behind(session: Path, tmp_path: Path) -> None:
    with at_work(session, tmp_path / "scratch", "--jobs", "2") as working:
        assert working.ended(signal.SIGTERM) == (143, b"", b"")
        assert not list(working.scratch.iterdir())


@pytest.mark.slow
def test_ctrl_c_ends_quietly_with_130_and_leaves_no_report(session: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "report.html"
    with at_work(session, tmp_path / "scratch", "--jobs", "2", "--html", str(target)) as working:
        status, out, err = working.ended(signal.SIGINT)
    assert (status, out) == (130, b"")
    assert b"Traceback" not in err
    assert not list(tmp_path.glob("out/*"))


def test_a_name_that_no_file_can_have_is_told_in_one_line(run: Run, session: Path) -> None:
    ran = run("replay", session, "--html", f"{'a' * 5000}/report.html")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.endswith(": File name too long\n")
    assert ran.err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_is_closed_is_told_before_the_work(run: Run, session: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    ran = run("replay", session, "--html", tmp_path / "closed" / "report.html")
    assert (ran.status, ran.out) == (2, "")
    assert "is closed to you; name a file in another folder" in ran.err


def test_a_reader_that_has_seen_enough_leaves_the_report_whole(session: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    reading, writing = os.pipe()
    os.close(reading)  # as `head` does once it has its lines
    with os.fdopen(writing, "wb") as out:
        subprocess.run(  # noqa: S603 -- our own command
            [sys.executable, "-m", "pagein", "replay", str(session), "--html", str(target), "--policy", "append"],
            stdout=out,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=300,
        )
    assert target.read_text(encoding="utf-8").rstrip().endswith("</html>")
