"""The pooled layout in pi: what the model is shown, its tools, and that the branch alone decides."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pi_host.fake_pi import FakePi

import pagein
from pagein.pi_host.host import PiSettings

ROWS = "".join(f"row {number} of an output that nobody needs for long\n" for number in range(60))
TEXT = "".join(f"line {number} of the file that the model reads\n" for number in range(40))
PRINT = ("bash", {"command": "print rows.txt"})
READ = ("read", {"path": "a.txt"})
HALF = {"tokens": 50_000, "window": 100_000}


@pytest.fixture
def pi(tmp_path: Path) -> Iterator[FakePi]:
    (tmp_path / "rows.txt").write_text(ROWS, encoding="utf-8")
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path, patience=0.05) as engine:
        made = FakePi(engine, tmp_path, PiSettings(pools=True))
        made.say("do it")
        yield made


def tool(pi: FakePi, name: str, target: str) -> str:
    """Let the model call a tool for pools, as pi carries it out. Returns the answer."""
    pi.request()
    made = {"id": f"call_{name}_{len(pi.entries)}", "name": name, "arguments": {"id": target}}
    pi.add("message", message={"role": "assistant", "content": [{"type": "toolCall", **made}], "timestamp": 1})
    answer = pi.ask("tool", call={"id": made["id"], "name": name, "input": {"id": target}})
    text = [{"type": "text", "text": answer["text"]}]
    told = {"toolCallId": made["id"], "toolName": name, "content": text, "isError": False, "timestamp": 1}
    pi.add("message", message={"role": "toolResult", **told})
    return str(answer["text"])


def contents(pi: FakePi) -> list[tuple[str, str]]:
    """The ids of the shown contents, with the message in front."""
    return [(text.split("\n")[0].split("id=")[1], after) for after, text in pi.inserts if "ACTIVE_CONTENT id=" in text]


def test_results_stand_as_references_with_their_content_behind_while_pi_keeps_the_text(pi: FakePi) -> None:
    assert pi.ask("begin")["tools"] == ["activate", "deactivate", "pin", "unpin"]
    assert pi.call(PRINT) + pi.call(READ) + pi.call(READ) == [ROWS, TEXT, TEXT], "no answer refers to what may leave"
    shown = pi.request()
    assert [one.split()[0] for one in shown] == ["toolcall_ref"] * 3
    assert all(one.endswith("use activate with this id.") for one in shown)
    calls = [one["message"]["toolCallId"] for one in pi.branch() if one["message"]["role"] == "toolResult"]
    (printed, at_print), (file, at_read) = contents(pi)
    assert (printed, at_print, at_read) == (calls[0], calls[0], calls[1])
    assert file in shown[1], "the reference names the file"
    assert pi.inserts[0][0] == "", "the legend stands in front of all"
    assert "`activate` brings" in pi.inserts[0][1]
    assert pi.host.answer is not None
    assert pi.order("rlm", "store").count("active") == 2
    assert "layout = pooled" in pi.order("rlm", "on")
    told, pi.is_off = pi.inserts, True
    assert (pi.request(), pi.inserts) == ([ROWS, TEXT, TEXT], [])
    pi.is_off = False
    assert (pi.request(), pi.inserts) == (shown, told), "as before pagein was switched off"


def test_what_is_put_away_is_brought_back_and_a_restart_shows_the_same(pi: FakePi, tmp_path: Path) -> None:
    pi.call(PRINT)
    printed = pi.branch()[-1]["message"]["toolCallId"]
    assert tool(pi, "deactivate", printed) == f"Deactivated {printed}"
    assert tool(pi, "activate", printed).endswith("below ACTIVE_CONTENT with this id."), "it still stands there"
    assert tool(pi, "pin", printed).startswith("Pinned")
    assert "Object not found" in tool(pi, "activate", "nothing")
    for _ in range(7):
        pi.call(READ)
    before = pi.request(), contents(pi)
    assert (printed, printed) in before[1], "pinned"
    pi.restart("s1")
    pi.forget()
    pi.ask("begin")
    assert (pi.request(), contents(pi)) == before
    with pagein.open(tmp_path / "other.pagein", workspace=tmp_path) as another:
        pi.restart("s1", another)
        pi.forget()
        assert [one.split()[0] for one in pi.request()[:1]] == ["toolcall_ref"], "rebuilt from the branch alone"


def test_a_branch_keeps_its_layout_and_a_fork_before_the_first_request_chooses_anew(tmp_path: Path, pi: FakePi) -> None:
    first = pi.leaf
    pi.call(PRINT)
    assert pi.request()[0].startswith("toolcall_ref")
    pi.host.close()
    pi._settings = PiSettings(pools=False)
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path) as engine:
        pi.restart("s1", engine)
        pi.forget()
        assert pi.request()[0].startswith("toolcall_ref")
        assert "activate" in {one["name"] for one in pi.welcome["tools"]}
        pi.restart("s2")
        pi.leaf = first
        assert pi.call(READ) == [TEXT]
        assert pi.request() == [TEXT], "another session, without the setting"
        pi._settings = PiSettings(pools=True)
        pi.restart("s2")
        pi.forget()
        assert pi.request() == [TEXT], "it began without, so it goes on without"


def test_a_compaction_is_cancelled_only_if_contents_can_leave_and_the_next_request_is_without_them(pi: FakePi) -> None:
    pi.call(PRINT)
    pi.request()
    assert not pi.ask("compact", usage=HALF)["cancel"], "all that is shown is active"
    for _ in range(6):
        pi.call(READ)
    pi.request()
    assert len(contents(pi)) == 2
    assert pi.ask("compact", usage=HALF)["cancel"]
    pi.say("go on")
    pi.request()
    assert [name for name, _ in contents(pi)] != []
    assert pi.branch()[2]["message"]["toolCallId"] not in {name for name, _ in contents(pi)}

    kept = pi.branch()[-1]["id"]
    pi.add("compaction", summary="The rows were printed.", firstKeptEntryId=kept, tokensBefore=1)
    pi.call(PRINT)
    assert pi.request()[-1].startswith("toolcall_ref")
