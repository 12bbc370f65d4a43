"""Evictions from a full window beside results: their order, their exceptions, and the texts in their place."""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from tests.engine.window.sized_sessions import PATIENT, opened, shown, spoken

from pagein.engine.recall.object_search import Lookup
from pagein.engine.session import Session
from pagein.errors import BadInput, BadSetting
from pagein.model.entries import EpochEntry
from pagein.model.messages import Image, Message, Text, ToolCall, ToolResult
from pagein.policy.eviction.overflow import Valve

SMALL = Valve(window=20_000, pastes=2000)
"""At 18,000 feared tokens, 13,500 of our own count, the valve opens; 9,000 of these may stay."""


def user(session: Session, text: str) -> None:
    session.append(Message("user", (Text(text),)))


def model(session: Session, text: str) -> None:
    session.append(Message("assistant", (Text(text),)))


def fails(session: Session, call: str, text: str) -> None:
    session.append(Message("assistant", (ToolCall(call, "Bash", "{}"),)))
    session.append(Message("tool", (ToolResult(call, text, "Bash", is_error=True),)))


def epochs(session: Session) -> list[EpochEntry]:
    return [entry.body for entry in session.journal if isinstance(entry.body, EpochEntry)]


def kinds(epoch: EpochEntry) -> set[str]:
    failed = {"failed" for one in epoch.paged if one.part == "result"}
    return failed | {"paste" for one in epoch.paged if one.part == "text"} | {"turns" for _ in epoch.turns}


def full(session: Session, first: Iterable[str] = ()) -> None:
    """A session with a failed output, a paste and turns, just below the valve."""
    user(session, "please look " + "p" * 3000)
    for call in ("a", *first):
        fails(session, call, f"{call} failed\n" + "x" * 2000)
        session.advance()
    for number in range(6):
        model(session, f"answer {number} " + "a" * 500)
        user(session, f"question {number} " + "q" * 400)
        session.advance()


def grows(session: Session, size: int) -> None:
    model(session, "more " + "m" * size)
    user(session, "and now?")
    session.advance()


@pytest.mark.parametrize(
    ("size", "expected"), [(3200, {"failed", "paste", "turns"}), (200, set())], ids=["full", "not full"]
)
def test_it_leaves_only_where_the_window_is_full(size: int, expected: set[str], tmp_path: Path) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = engine.session("one")
        full(session)
        grows(session, size)
        assert set().union(*map(kinds, epochs(session))) == expected


def test_failed_outputs_go_first_then_pastes_then_turns(tmp_path: Path) -> None:
    """Where the first kinds are enough, the last stay."""
    found = []
    for place, low in enumerate((0.86, 0.74, 0.5)):
        folder = tmp_path / str(place)
        folder.mkdir()
        with opened(folder, valve=Valve(low=low, window=20_000, pastes=2000)) as engine:
            session = engine.session("one")
            full(session)
            grows(session, 3200)
            (epoch,) = epochs(session)
            found.append(kinds(epoch))
    assert found == [{"failed"}, {"failed", "paste"}, {"failed", "paste", "turns"}]


def test_what_was_said_last_stays_whatever_it_weighs(tmp_path: Path) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = engine.session("one")
        full(session)
        model(session, "last answer " + "m" * 9000)
        user(session, "last question " + "q" * 9000)
        prepared = session.advance()
        assert prepared.crowded
        texts = spoken(session)
        assert any(one.startswith("last answer") and one.endswith("m" * 9000) for one in texts)
        assert texts[-1] == "last question " + "q" * 9000


def test_what_stands_for_turns_tells_the_users_words_first_and_explains_itself(tmp_path: Path) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = engine.session("one")
        full(session)
        grows(session, 3200)
        (epoch,) = epochs(session)
        (left,) = epoch.turns
        text = next(one for one in spoken(session) if one == left.text)
        assert text.index("please look") < text.index("[pagein: ")
        assert "nearly full" in text
        assert "Nothing of it is lost" in text
        assert f'peek("{left.object_id}")' in text
        roles = [message.role for message in session.last_request()]
        assert roles[0] == "user"
        assert all(one != other for one, other in pairwise(roles))


def test_a_search_finds_what_left_with_a_turn_and_restore_says_why_it_does_not_come_back(tmp_path: Path) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = engine.session("one")
        full(session)
        grows(session, 3200)
        (epoch,) = epochs(session)
        paste = next(one for one in epoch.paged if one.part == "text")
        found = {hit.object_id for hit in session.recalls.search(Lookup("answer 0")).hits}
        assert epoch.turns[0].object_id in found
        assert session.recall(paste.object_id) == "please look " + "p" * 3000
        for name in (paste.object_id, epoch.turns[0].object_id):
            with pytest.raises(BadInput, match="peek at it"):
                session.hand.restore(name)


def test_restore_says_that_a_result_left_with_its_turn_and_where_it_is(tmp_path: Path) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = engine.session("one")
        full(session)
        grows(session, 3200)
        (turns,) = [one for epoch in epochs(session) for one in epoch.turns]
        assert turns.calls
        for call in turns.calls:
            for act in (session.hand.restore, session.hand.pin):
                with pytest.raises(BadInput, match=f"together with its turn.*`pagein peek {turns.object_id}`"):
                    act(call)
        with pytest.raises(BadInput, match="has no tool result 'nothing'"):
            session.hand.restore("nothing")


def test_a_pinned_text_that_left_with_a_turn_enters_again(tmp_path: Path) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = engine.session("one")
        user(session, "begin")
        session.advance()
        session.hand.say("Never push.")
        model(session, "yes")
        full(session)
        grows(session, 6000)
        grows(session, 3000)
        assert any(one.turns for one in epochs(session))
        assert sum(text.endswith("\nNever push.") for text in spoken(session)) == 1


def test_images_and_what_the_user_holds_stay(tmp_path: Path) -> None:
    with opened(tmp_path, PATIENT, valve=SMALL) as engine:
        session = engine.session("one")
        session.append(Message("user", (Text("see this"), Image("image/png", 900))))
        session.advance()
        for call in ("a", "b"):
            session.append(Message("assistant", (ToolCall(call, "Bash", "{}"),)))
            session.append(Message("tool", (ToolResult(call, f"{call} says\n" + "x" * 900, "Bash"),)))
            session.advance()
        session.hand.pin("a")
        for number in range(6):
            model(session, f"answer {number} " + "a" * 1500)
            user(session, f"question {number} " + "q" * 900)
            session.advance()
        assert any(one.turns for one in epochs(session))
        assert any(isinstance(block, Image) for one in session.last_request() for block in one.blocks)
        assert shown(session)["a"] == "a says\n" + "x" * 900


def test_pastes_stay_where_the_setting_says_so_and_one_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, valve=Valve(low=0.74, window=20_000, pastes=0)) as engine:
        session = engine.session("one")
        full(session)
        grows(session, 3200)
        assert all(one.part != "text" for epoch in epochs(session) for one in epoch.paged)
    with pytest.raises(BadSetting, match="1000 characters"):
        Valve(pastes=10)
