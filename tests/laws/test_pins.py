"""Laws of the user's hand, on random trees of random sessions: whatever is wished and when, every request keeps them.

What is wished is written down here, apart from the engine; the requests are held to all other laws by `tests.laws.watched_engine`.
"""

import contextlib
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.engine.window.sized_sessions import ASK, OneToken, body
from tests.laws.watched_engine import WatchedEngine, WatchedSession

from pagein.engine.engine import Settings
from pagein.engine.prepared_request import WindowRequest
from pagein.engine.reads.pin_audit import pin_objections
from pagein.errors import CallerError
from pagein.model.entries import EntryId
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.eviction.overflow import NO_VALVE, Valve
from pagein.policy.stubs.previews import Previews
from pagein.testing.eager_residency import eager

TEXTS = ("Never touch the migrations.", "Tabs, not spaces.\n\tAlways.", "a\u2028b")
SETTINGS = (
    Settings(eager(batch_tokens=1000, keep_calls=2, min_tokens=100)),
    Settings(eager(batch_tokens=10**9, keep_calls=1, min_tokens=100, previews=Previews(1000, 400)), valve=NO_VALVE),
    Settings(
        eager(keep_calls=2, min_tokens=100, economics=Economics()),
        valve=Valve(window=6000),
        manifest=True,
    ),
)
ACTS = ("pin", "unpin", "drop", "restore", "veto")
TURNS = st.tuples(st.just("turn"), st.integers(200, 1800))
OPS = st.lists(
    st.one_of(
        TURNS,
        TURNS,
        TURNS,
        TURNS,
        st.tuples(st.sampled_from(ACTS), st.integers(0, 9)),
        st.tuples(st.sampled_from(["restore now", "restore now", "drop now", "pin now"]), st.integers(0, 9)),
        st.tuples(st.sampled_from(["epoch", "off", "on", "on", "pause"]), st.just(0)),
        st.tuples(st.sampled_from(["say", "unsay"]), st.integers(0, len(TEXTS) - 1)),
        st.tuples(st.just("compact"), st.integers(0, 5)),
        st.tuples(st.just("back"), st.integers(0, 40)),
    ),
    min_size=20,
    max_size=60,
)


@dataclass(frozen=True)
class Wished:
    """What holds on a branch, by this account."""

    held: frozenset[str] = frozenset()
    back: frozenset[str] = frozenset()
    ordered: bool = False
    texts: frozenset[str] = frozenset()
    off: bool = False
    request: tuple[Message, ...] = ()
    compacted: bool = False


@dataclass
class Story:
    """A session, and the account of what its user wants, at each of its entries."""

    session: WatchedSession
    now: Wished = Wished()
    at: dict[EntryId | None, Wished] = field(default_factory=dict)
    time: float = 0.0
    turns: int = 0

    def does(self, op: str, value: int) -> None:
        if op == "turn":
            self.says(value)
        elif op == "pause":
            self.time += 10_000.0
        elif op == "compact":
            self.session.note_compaction(kept=value)
            self.now = replace(self.now, compacted=True)
        elif op == "back":
            self.goes_back(value)
        elif op.endswith(" now"):
            for one in (op.removesuffix(" now"), "epoch"):
                self.wishes(one, value)
            self.says(300)
        else:
            self.wishes(op, value)
        self.at[self.session.leaf] = self.now

    def goes_back(self, steps: int) -> None:
        branch = self.session.journal.branch(self.session.leaf)
        places = [entry.id for entry in branch if entry.id in self.at]
        if steps < len(places):
            self.session.move(places[-1 - steps])
            self.now = self.at[places[-1 - steps]]
            self.session.laws.request = self.session.last_request()

    def wishes(self, op: str, value: int) -> None:
        hand, now = self.session.hand, self.now
        if op in ACTS:
            rows = hand.window()
            if not rows:
                return
            row = rows[value % len(rows)]
            with contextlib.suppress(CallerError):
                getattr(hand, op)(row.object_id or row.call_id)
                self.now = _after(now, op, row.call_id, out=row.form != "whole")
        elif op == "epoch":
            hand.epoch()
            self.now = replace(now, ordered=True)
        elif op in ("off", "on"):
            getattr(hand, op)()
            self.now = replace(now, off=op == "off")
        elif op == "say":
            hand.say(TEXTS[value])
            self.now = replace(now, texts=now.texts | {TEXTS[value]})
        elif TEXTS[value] in now.texts:
            hand.unsay(TEXTS[value])
            self.now = replace(now, texts=now.texts - {TEXTS[value]})

    def says(self, size: int) -> None:
        name = f"c{self.turns}"
        self.turns += 1
        self.time += 5.0
        self.session.append(Message("assistant", (ToolCall(name, "Bash", '{"command":"make"}'),)))
        self.session.append(Message("tool", (ToolResult(name, body(name, size), "Bash"),)))
        prepared = self.session.advance(self.time)
        request = tuple(self.session.last_request())
        self.holds(prepared, request)
        self.now = replace(self.now, request=request, compacted=False, ordered=False, back=self._left_out(prepared))
        self.at[self.session.leaf] = self.now

    def _left_out(self, prepared: WindowRequest) -> frozenset[str]:
        here = {one.call_id for one in self.session.hand.window() if one.form != "whole"}
        return self.now.back & here

    def holds(self, prepared: WindowRequest, request: tuple[Message, ...]) -> None:
        before, after = _results(self.now.request), _results(request)
        for call in self.now.held & set(after):
            if _is_whole(before.get(call, "")):
                assert _is_whole(after[call]), "what the user holds has left"
        if self.now.off:
            assert prepared.opened is None, "decided although it is switched off"
            assert not prepared.previewed
            return
        if (
            self.now.ordered
            and not prepared.crowded
            and (prepared.opened is None or "full" not in prepared.opened.reason)
        ):
            for call in self.now.back & set(after):
                assert after[call] in self.session.laws.originals[call], (
                    "what was to come back at the ordered epoch did not"
                )
        if prepared.opened is not None:
            for one in prepared.opened.restored:
                assert after[one.call_id] in self.session.laws.originals[one.call_id], (
                    "restored, and not as it was said"
                )
        shown = [block.text for message in request for block in message.blocks if isinstance(block, Text)]
        for text in self.now.texts:
            assert any(one.endswith("\n" + text) for one in shown), "a pinned text is not in the window"


def _after(now: Wished, act: str, call: str, *, out: bool) -> Wished:
    held = now.held - {call} if act in ("unpin", "drop") else now.held | {call} if act in ("pin", "veto") else now.held
    # of two wishes about one result the later one counts; a veto says nothing of what is out
    back = now.back | {call} if act in ("pin", "restore") and out else now.back - {call}
    return replace(now, held=held, back=back)


def _results(request: tuple[Message, ...]) -> dict[str, str]:
    return {
        block.call_id: block.text for message in request for block in message.blocks if isinstance(block, ToolResult)
    }


def _is_whole(text: str) -> bool:
    return " begins\n" in text[:20] and "[pagein: pg-" not in text


FULL_BEFORE_THE_EPOCH = [
    *[("pin now", 7), ("turn", 403), ("pin now", 2), ("pin now", 3), ("pin now", 2), ("turn", 706), ("turn", 497)],
    *[("restore now", 0), ("turn", 484), ("drop now", 7), ("pin", 1), ("drop now", 7)],
]
"""What the ordered epoch evicts makes room for what returns with it."""


@settings(deadline=None, max_examples=60)
@example(SETTINGS[2], FULL_BEFORE_THE_EPOCH)
@given(st.sampled_from(SETTINGS), OPS)
def test_every_request_keeps_the_laws_under_random_pins(chosen: Settings, ops: list[tuple[str, int]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        WatchedEngine(Path(folder) / "s.db", counter=OneToken(), settings=chosen, forks=True) as engine,
    ):
        story = Story(engine.session("one"))
        story.session.append(ASK)
        for op, value in ops:
            story.does(op, value)
        assert pin_objections(story.session.journal, engine.laws.blobs.get) == []
