"""Objects without content: a model that asks for the content gets a description of the object."""

from tests.store.search.remembered_sessions import Remembered, answered
from tests.tools.recall_sessions import Room, ask

from pagein.model.versions import Draft
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.object_drafts import object_number


def test_what_has_no_content_is_told_as_what_it_is(room: Room) -> None:
    store = SqliteStore(room.store)
    one = Remembered(store, "s")
    one.say("go", answered("ok"))
    made = one.file(1, "/w/a.py", "x = 1\n")
    one.put(Draft(id=made.id, type="file", deleted=True))
    one.put(
        Draft(id=object_number(77), type="pointer", metadata={"address": "https://example.org/rates"}, nickname="rates")
    )
    store.close()
    session = room.session()
    told = ask(session, "peek", id="rates")
    assert told.is_error
    assert (
        told.text
        == f"Object rates not found: it has no content: pointer {object_number(77)}@1: nickname=rates, char_count=0"
    )
    told = ask(session, "peek", id=made.id)
    assert told.is_error
    assert told.text == f"Object {made.id} not found: it was deleted; {made.id}@1 is the version before"
    assert "no stored chat" not in ask(session, "peek", id=one.session).text
