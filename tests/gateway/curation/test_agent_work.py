"""Agents are at work from a request to the end of an answer without calls; a person's change lies in between."""

from pagein.gateway.curation.agent_work import AgentWork


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_agent_works_until_an_answer_calls_no_tool() -> None:
    clock = Clock()
    work = AgentWork(clock)
    work.note_request("one", "one/tools", 10.0, is_near=True)
    clock.now = 12.0
    work.note_answer("one/tools", calls=True)
    assert not work.is_at_rest((), 600.0)
    work.note_request("one", "one/tools", 15.0, is_near=True)
    clock.now = 16.0
    work.note_answer("one/tools", calls=False)
    assert work.is_at_rest((), 600.0)
    assert [work.was_at_rest(at, ()) for at in (-1.0, 5.0, 10.0, 13.0, 16.02, 16.1, 99.0)] == [
        False,  # before the gateway began
        True,
        False,
        False,  # a tool ran
        False,  # the last write of a tool may be told late
        True,
        True,
    ]


def test_another_conversation_of_the_same_session_hides_no_work() -> None:
    clock = Clock()
    work = AgentWork(clock)
    work.note_request("one", "one/tools", 1.0, is_near=True)
    work.note_request("one", "one/others", 2.0, is_near=True)
    work.note_answer("one/others", calls=False)
    assert not work.was_at_rest(5.0, ())
    assert work.was_at_rest(5.0, {"one"}), "a session of another folder does not count"


def test_calls_that_are_never_answered_keep_others_waiting_for_a_while_only() -> None:
    clock = Clock()
    work = AgentWork(clock)
    work.note_request("one", "one/tools", 1.0, is_near=True)
    work.note_answer("one/tools", calls=True)
    clock.now = 500.0
    assert not work.is_at_rest((), 600.0)
    clock.now = 700.0
    assert work.is_at_rest((), 600.0)
    assert not work.was_at_rest(650.0, ()), "a person is never named for that time"


def test_a_session_is_near_only_if_all_its_requests_are() -> None:
    work = AgentWork(Clock())
    work.note_request("one", "one", 1.0, is_near=True)
    work.note_request("two", "two", 1.0, is_near=True)
    work.note_request("two", "two", 2.0, is_near=False)
    assert set(work.near_sessions()) == {"one"}
