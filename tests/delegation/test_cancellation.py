"""After any end of an operation, none of its work continues, and finished answers are kept."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.delegation.asked_sessions import Asked, run

from pagein.delegation.blocking_calls import ask_now
from pagein.delegation.call_tree import OperationView
from pagein.delegation.ordered_work import work_on_each
from pagein.delegation.thread_work import finish_in_thread
from pagein.errors import OverloadedProvider
from pagein.policy.delegation.reports import Question, Report
from pagein.ports import ChildRequest
from pagein.testing.scripted_children import Step, reply, shown_to

Asks = Callable[..., Asked]


async def _slow(request: ChildRequest) -> Step:
    if "slow" in shown_to(request):
        await asyncio.sleep(60)
    return reply(shown_to(request).splitlines()[1])


def test_cancelling_an_operation_keeps_what_was_finished(asks: Asks) -> None:
    room = asks(_slow, concurrency=2)
    session = room.session()
    ids = room.ingested(session, a="quick a\n", b="slow b\n", c="quick c\n", d="slow d\n", e="quick e\n")

    def watch(view: OperationView) -> None:
        if view.done == 2 and sum(one.status == "running" for one in view.calls) == 2:
            assert room.tree.cancel(view.operation_id)

    question = Question("batch", "?", tuple(ids))
    report = run(lambda: room.delegation(session).ask(question, watch))
    assert report.is_cancelled
    assert report.partial == "2 of 5 answered: cancelled"
    assert [one.status for one in report.results] == ["success", "cancelled", "success", "cancelled", "not_asked"]
    assert room.session().recall(str(report.results[2].object_id)) == "quick c"
    assert (room.child.running, room.child.closed, room.tree.operations()) == (0, 1, ())
    assert [one["status"] for one in room.trajectory()].count("cancelled") == 2
    assert report.actual.usd is not None


def test_a_wait_before_a_retry_is_cancelled_too(asks: Asks) -> None:
    """In the known implementation retries had a controller of their own, which no cancel reached."""
    room = asks(lambda _: OverloadedProvider("busy", 100))
    session = room.session()
    ids = room.ingested(session, a="1\n")

    def watch(view: OperationView) -> None:
        if any(one.doing.startswith("waits") for one in view.calls):
            room.tree.cancel_all()

    began = time.monotonic()
    report = run(lambda: room.delegation(session).ask(Question("query", "?", tuple(ids)), watch))
    assert report.is_cancelled
    assert time.monotonic() - began < 30


def test_a_cancelled_caller_is_cancelled_and_leaves_nothing(asks: Asks) -> None:
    room = asks(_slow)
    session = room.session()
    ids = room.ingested(session, a="slow\n")

    async def give_up() -> None:
        async with asyncio.timeout(0.2):
            await room.delegation(session).ask(Question("query", "?", tuple(ids)))

    with pytest.raises(TimeoutError):
        run(give_up)
    assert (room.child.running, room.child.closed, room.tree.operations()) == (0, 1, ())


def test_times_are_limited_for_a_child_and_for_the_operation(asks: Asks) -> None:
    room = asks(_slow, child_seconds=0.2)
    session = room.session()
    ids = room.ingested(session, a="slow\n", b="quick\n")
    report = room.ask(session, "batch", ids)
    assert [one.status for one in report.results] == ["timeout", "success"]
    assert "child_seconds" in report.results[0].why
    assert report.actual.usd is not None  # a call that was broken off may be billed

    room = asks(_slow, operation_seconds=0.3, concurrency=1)
    late = room.ask(session, "batch", [ids[1], ids[0]])
    assert [one.status for one in late.results] == ["success", "timeout"]
    assert "child_" in late.results[1].why


@settings(max_examples=25)
@given(moment=st.integers(0, 60), concurrency=st.integers(1, 4), by_caller=st.booleans())
def test_a_cancel_at_any_moment_leaves_no_task_and_no_call(moment: int, concurrency: int, *, by_caller: bool) -> None:
    """The moment is a number of turns of the event loop, so that every await of the operation is hit by some example."""
    room, ids = _shared_room(concurrency)
    session = room.engines[0].session("main")
    before = room.child.closed

    async def cancelled_then() -> Report | None:
        asking = asyncio.ensure_future(room.delegation(session).ask(Question("batch", "?", tuple(ids))))
        for _ in range(moment):
            await asyncio.sleep(0.0005 if moment % 2 else 0)
        if by_caller:
            asking.cancel()
        else:
            room.tree.cancel_all()
        try:
            return await asking
        except asyncio.CancelledError:
            return None

    report = run(cancelled_then)
    assert room.child.running == 0
    assert room.tree.operations() == ()
    assert room.child.closed - before <= 1
    assert not [one for one in threading.enumerate() if one.name.startswith("asyncio_")]
    if report is not None and report.results:
        assert [one.targets for one in report.results] == [(one,) for one in ids]
        for one in report.results:
            if one.status == "success":
                assert session.recall(str(one.object_id)) == one.answer
            else:
                assert one.why


_ROOMS: list[tuple[Asked, list[str]]] = []


def _shared_room(concurrency: int) -> tuple[Asked, list[str]]:
    from dataclasses import replace

    room, ids = _ROOMS[-1]
    room.limits = replace(room.limits, concurrency=concurrency)
    return room, ids


@pytest.fixture(autouse=True)
def _room(asks: Asks, request: pytest.FixtureRequest) -> None:
    if "moment" not in request.node.name:
        return
    room = asks(lambda request: reply(shown_to(request).splitlines()[1]))
    session = room.session()
    _ROOMS.append((room, room.ingested(session, **{f"f{number}": f"text {number}\n" for number in range(6)})))


def test_a_signal_of_the_caller_cancels_without_an_event_loop(asks: Asks) -> None:
    room = asks(_slow)
    session = room.session()
    ids = room.ingested(session, a="slow\n")
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    question = Question("query", "?", tuple(ids))
    report = ask_now(room.delegation(session), question, tree=room.tree, stop=stop)
    assert report.is_cancelled

    async def inside_a_loop() -> Report:
        return ask_now(room.delegation(session), question, tree=room.tree, stop=stop)

    assert asyncio.run(inside_a_loop()).is_cancelled


def test_ten_thousand_items_take_as_many_tasks_as_are_at_work() -> None:
    seen, most = 0, 0

    async def work(_place: int, _item: int) -> None:
        nonlocal seen, most
        await asyncio.sleep(0)
        seen, most = seen + 1, max(most, len(asyncio.all_tasks()))

    run(lambda: work_on_each(range(10_000), work, 4))
    assert (seen, most) == (10_000, 5)


def test_work_in_a_thread_is_finished_before_a_cancellation_goes_on() -> None:
    ended: list[bool] = []

    def work(stop: threading.Event) -> None:
        ended.append(stop.wait(10))

    async def cancel_it() -> None:
        working = asyncio.ensure_future(finish_in_thread(work))
        await asyncio.sleep(0.05)
        working.cancel()
        await asyncio.sleep(0)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert ended == [True]

    run(cancel_it)
