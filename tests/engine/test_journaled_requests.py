"""What the journal tells of a request beside its messages: when they came, and the system prompt."""

import json
from pathlib import Path

import pytest

from pagein import wiring
from pagein.model.entries import Entry, MessageEntry, NoteEntry
from pagein.model.journal_notes import SystemPromptNote
from pagein.store.sqlite.sqlite_store import SqliteStore

USER = {"role": "user", "content": "hi"}
REQUESTS = {
    "anthropic": {"model": "claude-opus-4-6", "max_tokens": 9, "system": "Be brief.", "messages": [USER]},
    "openai_chat": {
        "model": "gpt-5.1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [{"type": "text", "text": "Use tools."}]},
            USER,
        ],
    },
    "openai_responses": {
        "model": "gpt-5.5",
        "instructions": "Be brief.",
        "input": [{"role": "developer", "content": "Use tools."}, USER],
    },
}


@pytest.fixture(params=REQUESTS)
def entries(request: pytest.FixtureRequest, tmp_path: Path) -> list[Entry]:
    """The journal of a session with one request."""
    engine = wiring.open(tmp_path / "one.pagein", workspace=tmp_path)
    engine.session("main").prepare(json.dumps(REQUESTS[request.param]).encode(), api=request.param)
    engine.close()
    store = SqliteStore(tmp_path / "one.pagein")
    found = [one for one in store.entries("main") if isinstance(one, Entry)]
    store.close()
    return found


def test_messages_from_the_wire_have_the_time_at_which_they_came(entries: list[Entry]) -> None:
    times = [one.at for one in entries if isinstance(one.body, MessageEntry)]
    assert times
    assert all(at is not None and at > 1_700_000_000 for at in times)


def test_a_system_prompt_is_journaled_wherever_its_format_has_it(entries: list[Entry]) -> None:
    notes = [one.body.note for one in entries if isinstance(one.body, NoteEntry)]
    (prompt,) = [one for one in notes if isinstance(one, SystemPromptNote)]
    assert prompt.text in ("Be brief.", "Be brief.\nUse tools.")
