"""The audit of pins: no objection to correct windows, and an objection to each error."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.engine.window.sized_sessions import EAGER, begun, opened, says, turn

from pagein.engine.reads.law_audit import objections
from pagein.engine.reads.pin_audit import pin_objections
from pagein.engine.session import Session
from pagein.model.entries import Body, Entry, EpochEntry, InsertEntry
from pagein.model.names import ContentHash


def stored_of(session: Session) -> dict[ContentHash, bytes]:
    bodies = [one.body for one in session.journal]
    paged = [one for body in bodies if isinstance(body, EpochEntry) for one in body.paged]
    return {one.content: session.recall(one.object_id).encode() for one in paged}


def lived(session: Session) -> None:
    """A session with everything in it."""
    session.hand.pin("a")
    session.hand.say("be kind")
    says(session, *(turn(one) for one in "fgh"))
    session.hand.restore("b")
    session.hand.epoch()
    says(session, turn("i"))
    session.hand.unpin("a")
    says(session, *(turn(one) for one in "jklm"))


def forged(entries: Sequence[Entry], change: type[Body], forge: object) -> list[Entry]:
    """The journal with one entry that says something else."""
    made: list[Entry] = []
    done = False
    for entry in entries:
        body = forge(entry.body) if isinstance(entry.body, change) and not done else None  # type: ignore[operator]
        done = done or body is not None
        made.append(entry if body is None else replace(entry, body=body))
    assert done
    return made


def test_what_is_done_as_it_was_wished_is_not_objected_to(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine)
        session.hand.pin("a")
        lived(session)
        assert any(isinstance(one.body, EpochEntry) and one.body.restored for one in session.journal)
        assert objections(session.journal, stored_of(session).get) == []


def test_a_held_result_that_left_is_found(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine, "ab")
        session.hand.veto("a")
        says(session, *(turn(one) for one in "cdef"))

        def leaves(body: EpochEntry) -> EpochEntry:
            return replace(body, paged=tuple(replace(one, call_id="a") for one in body.paged[:1]))

        (found,) = pin_objections(forged(list(session.journal), EpochEntry, leaves), stored_of(session).get)
        assert "call a left although its user holds it" in found


def test_what_came_back_otherwise_or_never_left_is_found(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine)
        lived(session)

        def other(text: str, call: str) -> object:
            def forge(body: EpochEntry) -> EpochEntry | None:
                back = tuple(replace(one, text=one.text + text, call_id=call or one.call_id) for one in body.restored)
                return replace(body, restored=back) if back else None

            return forge

        entries, stored = list(session.journal), stored_of(session)
        assert "is not what left" in pin_objections(forged(entries, EpochEntry, other("x", "")), stored.get)[0]
        assert "never left" in pin_objections(forged(entries, EpochEntry, other("", "nobody")), stored.get)[0]


def test_a_pinned_text_that_entered_otherwise_is_found(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine)
        lived(session)

        def reworded(body: InsertEntry) -> InsertEntry:
            return replace(body, text=body.text.replace("kind", "cruel"))

        (found,) = pin_objections(forged(list(session.journal), InsertEntry, reworded), stored_of(session).get)
        assert "is not what was pinned" in found
