"""Law 9: text that must not be stored is in the window, but not in the store, not even in a journal."""

import sqlite3
from contextlib import closing
from pathlib import Path

from pagein import wiring
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.privacy.exclusions import WITHHELD

SHOWN = "TOKEN=correct-horse-battery-staple"


def _says(session_file: Path, command: str, shown: str = SHOWN) -> tuple[list[Message], list[Message]]:
    """The request of the session that said it, and of one that goes on with it in another process."""
    said = [
        Message("user", (Text("show it"),)),
        Message("assistant", (ToolCall("c1", "Bash", f'{{"command":"{command}"}}'),)),
        Message("tool", (ToolResult("c1", shown, "Bash"),)),
    ]
    with wiring.open(session_file, workspace=session_file.parent) as engine:
        session = engine.session("one")
        for message in said:
            session.append(message)
        session.advance()
        here = session.last_request()
    with wiring.open(session_file, workspace=session_file.parent) as engine:
        again = engine.session("one")
        again.append(Message("assistant", (Text("seen"),)))
        again.append(Message("user", (Text("go on"),)))
        again.advance()
        return here, again.last_request()


def _texts(messages: list[Message]) -> list[str]:
    return [block.text for message in messages for block in message.blocks if isinstance(block, ToolResult)]


def test_output_that_shows_an_excluded_file_is_in_the_window_and_not_in_the_store(tmp_path: Path) -> None:
    here, again = _says(tmp_path / "store.db", "cat .env")
    assert _texts(here) == [SHOWN]
    assert _texts(again) == [WITHHELD]
    for file in tmp_path.iterdir():
        assert SHOWN.encode() not in file.read_bytes()
    with closing(sqlite3.connect(tmp_path / "store.db")) as store:
        assert SHOWN not in "\n".join(store.iterdump())


def test_other_output_is_kept_and_goes_on_the_same(tmp_path: Path) -> None:
    here, again = _says(tmp_path / "store.db", "cat notes.txt", "what anybody may know")
    assert _texts(here) == _texts(again) == ["what anybody may know"]
