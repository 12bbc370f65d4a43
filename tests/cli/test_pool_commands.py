"""The pools from the command line: another process on a session that is running."""

from pathlib import Path

from tests.cli.test_pin_commands import opened, run, told

from pagein.model.messages import Message, Text, ToolCall, ToolResult


def test_objects_are_activated_pinned_and_put_away_from_another_process(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    with opened(tmp_path) as engine:
        session = engine.session("one")
        session.append(Message("user", (Text("Go on."),)))
        session.append(Message("assistant", (ToolCall("tc-1", "ls", '{"path":"."}'),)))
        session.append(Message("tool", (ToolResult("tc-1", "a.txt\n", "ls"),)))
        session.keep()
        file = told(tmp_path, "activate", "one", "a.txt")["target"]
        pinned = str(told(tmp_path, "pin", "one", "a.txt")["text"])
        assert "this window shows none" in pinned, "a person who wants to keep a result learns how"
        told(tmp_path, "deactivate", "one", "tc-1")
        session.catch_up()
        assert session.pools.sets() == {"active_set": (file,), "inactive_set": ("tc-1",), "pinned_set": (file,)}
        assert run(tmp_path, "pool", "one").stdout.splitlines() == [
            f"{file}  active  pinned  file  6 characters  {tmp_path}/a.txt",
            'tc-1  inactive  toolcall  6 characters  ok  ls {"path":"."}',
        ]
    refused = run(tmp_path, "activate", "one", "zz")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Object not found: zz; `pagein pool one` lists the objects that the session knows" in " ".join(
        refused.stderr.split()
    )
