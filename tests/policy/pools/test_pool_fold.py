"""Pools: the portable cases of the memory system, the defects of its implementations, and laws over random sessions."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.pools.pool_stories import HOME, Story, ids
from tests.work_counts import allocated, calls

from pagein.engine.log.journal import Fold, Journal
from pagein.model.entries import MessageEntry, RequestSent
from pagein.model.messages import Message, Other, Text, Thinking, ToolCall
from pagein.model.pool_notes import PoolAct
from pagein.policy.pools.found_paths import MOST_PATHS, found_paths
from pagein.policy.pools.pool_fold import TAKES, PoolFold, PoolWalk
from pagein.policy.pools.pool_values import PoolChange, PoolRules, PoolState

UNIQUE = "toolu_01A09q90qw90lq917835lq9"
ONE = PoolRules(recent_calls=1, recent_turns=1)


def known(path: str, version: str = "v1", **more: object) -> PoolAct:
    return PoolAct("activate", path, "file", "text", version, 5, f"/repo/{path}", **more)  # type: ignore[arg-type]


# --- the auto-activation window ---


def test_recent_calls_are_active_older_ones_are_not_and_a_pin_stays() -> None:
    story = Story(ONE).says().calls("t1").says().calls("t2")
    assert ids(story.state) == ["t2"]
    story.hand("pin", "t2").says().calls("t3")
    assert ids(story.state) == ["t2", "t3"]
    story.hand("unpin", "t2").says().calls("t4")
    assert ids(story.state) == ["t4"]


def test_by_default_five_calls_of_a_turn_and_three_turns_count() -> None:
    story = Story().says()
    for number in range(7):
        story.calls(f"a{number}")
    assert ids(story.state) == ["a2", "a3", "a4", "a5", "a6"]
    story.says().calls("b").says().calls("c")
    assert ids(story.state) == ["a2", "a3", "a4", "a5", "a6", "b", "c"]
    assert ids(story.says().calls("d").state) == ["b", "c", "d"]


def test_calls_that_only_change_the_window_do_not_count_toward_it() -> None:
    story = Story(PoolRules(recent_calls=2)).says().calls("t1").calls("t2")
    story.calls("c1", "activate", "Activated x", id="x").calls("c2", "deactivate", "Deactivated x", id="x")
    assert ids(story.state) == ["t1", "t2"]
    assert story.state.index["c1"].place is None


def test_what_a_hand_put_away_no_recent_call_brings_back() -> None:
    story = Story().says().calls("t1").calls("t2").acts(PoolAct("deactivate", "t1"))
    assert ids(story.state) == ["t2"]
    story.calls("t3")
    assert ids(story.state) == ["t2", "t3"]
    assert story.state.index["t1"].place is not None
    assert ids(story.acts(PoolAct("activate", "t1")).state) == ["t2", "t3", "t1"]


def test_a_file_that_was_put_away_comes_back_when_it_is_read_and_not_when_it_is_edited() -> None:
    story = Story().says().calls("r1", "read", "one\n", path="a.py")
    file = story.file("a.py")
    story.acts(PoolAct("deactivate", file)).calls("e", "edit", "ok", path="a.py", oldText="one", newText="two")
    assert file not in ids(story.state)
    assert file in ids(story.calls("r2", "read", "two\n", path="a.py").state)


# --- assembly ---


def test_a_result_is_an_object_in_the_pool_and_active() -> None:
    state = Story().says().calls("tc-1", "ls", "a.py\n", path=".").state
    lines = [(one.id, one.type, one.tool, one.status) for one in state.pool() if one.type == "toolcall"]
    assert lines == [("tc-1", "toolcall", "ls", "ok")]
    assert ids(state) == ["tc-1"]


def test_a_failed_call_says_so() -> None:
    assert Story().says().calls("t", output="no", fails=True).state.index["t"].status == "fail"


def test_a_read_of_a_file_shows_the_file_and_no_output_of_its_own() -> None:
    story = Story().says().calls("r", "read", "one\ntwo\n", path="a.py")
    assert ids(story.state) == [story.file("a.py")]
    assert [one.type for one in story.state.pool()] == ["file"]
    assert story.state.index["r"].place is None
    assert story.walk.texts[story.state.active[0].version].startswith("one\ntwo")


def test_the_output_of_a_read_call_can_still_be_activated() -> None:
    story = Story().says().calls("r", "read", "one\n", path="a.py").acts(PoolAct("activate", "r"))
    assert ids(story.state) == [story.file("a.py"), "r"]
    assert story.state.index["r"].place == 1


# --- defects of the implementations before ---


def test_m1_a_turn_may_have_many_answers_and_calls() -> None:
    state = Story().says().calls("a").calls("b").calls("c").state
    assert (state.turn, ids(state)) == (1, ["a", "b", "c"])


def test_m2_messages_after_a_compaction_are_not_lost_and_repeated_ones_are_not_met_twice() -> None:
    story = Story().says().calls(UNIQUE, output="first").compacts()
    before = story.state
    story.calls(UNIQUE, output="[cut by the host]")
    again = story.state
    assert (again.index, again.active, again.window) == (before.index, before.active, before.window)
    assert story.walk.texts[again.active[0].version] == "first"
    assert ids(story.calls("b").state) == [UNIQUE, "b"]


def test_calls_that_a_provider_numbers_anew_are_objects_of_their_own() -> None:
    story = Story().says().calls("call_0", output="one").says().calls("call_0", output="two")
    assert [story.walk.texts[one.version] for one in story.state.active] == ["one", "two"]
    assert ids(story.calls("call_0", output="one").state) == ids(story.state)  # the same call, told again


def test_a_compaction_leaves_the_sets_and_counts_messages_anew() -> None:
    story = Story().says().calls("a").calls("b")
    before = story.state
    after = story.compacts(kept=2).state
    assert (after.sets(), after.turn) == (before.sets(), 1)
    assert (after.messages, after.epoch.number, [one.id for one in after.listed()]) == (2, 1, ["a", "b"])
    assert not any(after.news_at(place) for place in range(9))


def test_messages_of_the_host_are_no_turns_and_no_objects() -> None:
    story = Story().says().calls("a")
    before = story.state
    for block in (Text("todo list changed", injected="hook_success"), Other("custom", "{}"), Thinking("hm")):
        story.bodies.append(MessageEntry(Message("user", (block,))))
    story.bodies.append(MessageEntry(Message("system", (Text("Be brief."),))))
    assert (story.state.turn, story.state.sets(), story.state.news) == (1, before.sets(), before.news)
    assert ids(story.calls("b").state) == ["a", "b"]


def test_m3_an_activation_moves_nothing_that_stands_before_it() -> None:
    story = Story().says().calls("z").calls("m")
    before, listed = story.state.active, list(story.state.pool())
    story.acts(known("a"))
    assert story.state.active[:2] == before
    assert list(story.state.pool())[:2] == listed


def test_m4_the_active_content_stays_bounded_though_nobody_deactivates_anything() -> None:
    rules = PoolRules()
    story = Story(rules)
    most = 0
    for turn in range(20):
        story.says()
        for number in range(12):
            story.calls(f"r{turn}-{number}", "read", f"{turn} {number}\n", path=f"f{turn}-{number}.py")
    for walk in story.walks():
        most = max(most, len(walk.state.active))
    assert most == rules.recent_calls * rules.recent_turns


def test_activations_by_hand_alone_stay_bounded_too() -> None:
    story = Story(PoolRules(by_hand=4)).says()
    for number in range(9):
        story.acts(known(f"f{number}"))
    assert ids(story.state) == ["f5", "f6", "f7", "f8"]


def test_m5_a_pinned_and_active_file_is_shown_in_its_newest_version_alone() -> None:
    story = Story().says().calls("r", "read", "one\n", path="a.py")
    file = story.file("a.py")
    story.hand("pin", file).acts(PoolAct("activate", file))
    old = story.state.active
    story.calls("w", "write", "ok", path="a.py", content="two\n")
    assert [one.id for one in story.state.active].count(file) == 1
    shown = next(one for one in story.state.active if one.id == file)
    assert story.walk.texts[shown.version] == "two\n"
    assert shown.since > old[0].since


def test_a_change_that_leaves_the_content_unknown_takes_the_old_version_out() -> None:
    story = Story().says().calls("r", "read", "one\n", path="a.py")
    file = story.file("a.py")
    story.calls("e", "edit", "ok", path="a.py", oldText="not there", newText="two")
    assert file not in ids(story.state)
    assert story.state.index[file].content == "unread"


@pytest.mark.parametrize(
    "command",
    [
        "sed -i 's/1/2/' a.py",
        "cd /repo && sed -ni.bak -e p a.py && pytest",
        "perl -pi -e 's/1/2/' a.py",
        "echo 2 >> a.py",
        "echo 2 | tee a.py",
        "cp b.py a.py",
        "git checkout -- a.py",
    ],
)
def test_a_file_that_a_command_wrote_is_unknown_until_it_is_read_again(command: str) -> None:
    story = Story().says().calls("r", "read", "x = 1\n", path="a.py")
    file = story.file("a.py")
    assert story.calls("s", command="sed -n 1p a.py 2>/dev/null; perl -ne print a.py").state.is_active(file)
    assert not story.calls("w", command=command).state.is_active(file)
    assert story.state.index[file].content == "unread"
    assert story.calls("r2", "read", "x = 2\n", path="a.py").state.is_active(file)


@pytest.mark.parametrize("command", ["mv a.py old.bak", "rm -rf a.py", "git mv a.py lib", "unlink a.py; ls"])
def test_what_became_of_a_file_in_a_command_that_is_not_understood_is_unknown(command: str) -> None:
    story = Story().says().calls("r", "read", "x = 1\n", path="a.py").calls("m", command=command)
    assert not story.state.is_active(story.file("a.py"))
    assert story.state.index[story.file("a.py")].content == "unread"


def test_a_move_that_is_understood_keeps_what_is_known() -> None:
    story = Story().says().calls("r", "read", "x = 1\n", path="a.py").calls("m", command="mv a.py b.py")
    assert story.state.index[story.file("b.py")].content == "text"
    assert story.state.index[story.file("b.py")].path == "/repo/b.py"


def test_a_read_of_some_lines_that_shows_another_file_makes_the_known_content_unknown() -> None:
    story = (
        Story(client="claude-code")
        .says()
        .calls("r", "Read", "     1\tone\n     2\ttwo\n     3\tthree", file_path="/repo/a.py")
    )
    part = partial(story.calls, tool="Read", file_path="/repo/a.py", offset=2, limit=1)
    file = story.file("a.py")
    assert part("p", output="     2\ttwo").state.is_active(file)
    assert not part("q", output="     2\tTWO").state.is_active(file)
    assert story.state.index[file].content == "unread"


def test_a_notice_that_a_file_is_empty_makes_the_known_content_unknown() -> None:
    notice = "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"
    story = Story(client="claude-code").says()
    reads = partial(story.calls, tool="Read", file_path="/repo/a.py")
    reads("r", output="     1\tone\n     2\ttwo")
    file = story.file("a.py")
    told = "<system-reminder>Warning: the file exists but is shorter than the provided offset (9).</system-reminder>"
    assert reads("o", output=told).state.is_active(file)
    reads("e", output=notice)
    assert not story.state.is_active(file)
    assert story.state.index[file].content == "unread"
    assert reads("a", output="     1\tone").state.index[file].chars == len("one")


def test_the_move_of_an_active_file_is_told() -> None:
    story = Story().says().calls("r", "read", "x = 1\n", path="a.py").asks().calls("m", command="mv a.py b.py")
    assert ("updated", story.file("b.py")) in [(one.kind, one.id) for one in story.state.news_at(story.state.messages)]


def test_a_file_that_a_move_replaces_is_deleted() -> None:
    story = Story().says().calls("r", "read", "one\n", path="a.py").calls("s", "read", "two\n", path="b.py")
    moved, replaced = story.file("a.py"), story.file("b.py")
    state = story.calls("m", command="mv a.py b.py").state
    assert (state.index[replaced].deleted, state.is_active(replaced)) == (True, False)
    assert (state.index[moved].path, state.is_active(moved)) == ("/repo/b.py", True)
    assert story.file("b.py") == moved


def test_a_deleted_file_that_a_command_writes_is_there_again() -> None:
    story = Story().says().calls("r", "read", "x = 1\n", path="a.py").calls("d", command="rm a.py")
    assert story.state.index[story.file("a.py")].deleted
    story.calls("d2", command="rm -f a.py; ls", fails=True).calls("d3", command="rm -rf a.py").calls(
        "w1", command="echo x > a.py", fails=True
    )
    assert story.state.index[story.file("a.py")].deleted
    again = story.calls("w", command="echo x > a.py").state.index[story.file("a.py")]
    assert (again.deleted, again.content) == (False, "unread")


def test_an_edit_changes_what_the_pools_read_last_and_no_older_text() -> None:
    for stored, expected in (({"v1": "new text\n"}, "NEW text\n"), ({}, None)):
        story = Story().says().calls("w", "write", "ok", path="a.py", content="old text\n")
        act = replace(known("a.py"), id=story.file("a.py"))
        story.acts(act).calls("e", "edit", "ok", path="a.py", oldText="new", newText="NEW")
        walk = replace(story.fold, stored=stored.get).walk(story.bodies, HOME)
        version = walk.state.index[story.file("a.py")].version
        assert (None if version is None else walk.texts[version]) == expected


def test_an_edit_of_a_content_in_doubt_leaves_the_content_unknown() -> None:
    story = Story().says().calls("r", "read", "one\n", path="a.py").calls("x", command="make")
    story.calls("e", "edit", "ok", path="a.py", oldText="one", newText="two")
    assert story.state.index[story.file("a.py")].content == "unread"


def test_m6_a_name_in_a_list_never_hides_what_is_known() -> None:
    story = Story().says().calls("r", "read", "one\n", path="a.py")
    file = story.file("a.py")
    before = story.state.index[file]
    story.calls("l", "bash", "a.py\nb.py\n", command="ls")
    assert story.state.index[file] == before
    assert story.state.index[story.file("b.py")].content == "unread"
    assert story.state.index[story.file("b.py")].place is not None


def test_m7_a_rename_is_told_by_a_command_and_the_object_stays_the_same() -> None:
    story = Story().says().calls("r", "read", "one\n", path="a.py")
    file = story.file("a.py")
    story.calls("m", "bash", "", command="mv a.py b.py")
    assert story.file("b.py") == file
    assert story.state.index[file].path == "/repo/b.py"
    assert file in ids(story.state)


def test_a_deleted_file_stays_listed_and_leaves_the_window() -> None:
    story = Story().says().calls("r", "read", "one\n", path="a.py")
    file = story.file("a.py")
    story.calls("d", "bash", "", command="rm a.py")
    one = story.state.index[file]
    assert (one.deleted, one.content, one.place) == (True, "none", 0)
    assert file not in ids(story.state)


def test_m9_one_more_turn_costs_the_same_in_a_long_session() -> None:
    story, rest = Story(), Story()
    for turn in range(500):
        story.says().calls(f"t{turn}", "read", f"{turn}\n", path=f"f{turn}.py").calls(f"u{turn}", "bash", "out")
    rest.says().calls("t", "read", "x\n", path="new.py").calls("u", "ls", "a.py\nb.py\n").acts(
        PoolAct("activate", "u1")
    )
    fold = PoolFold("story")
    walks = list(story.walks())

    def one_more(walk: PoolWalk) -> PoolWalk:
        for body in rest.bodies[1:]:
            walk = fold.step(walk, body)
        return walk

    early, late = walks[100], walks[-1]
    one_more(early)  # what is remembered of the calls is remembered now
    assert calls(lambda: one_more(late)) < 1.3 * calls(lambda: one_more(early))
    assert allocated(lambda: one_more(late)) < 3 * allocated(lambda: one_more(early))


def test_m12_empty_output_is_content() -> None:
    story = Story(ONE).says().calls("t", output="")
    assert ids(story.state) == ["t"]
    story.says().calls("u").acts(PoolAct("activate", "t"))
    assert ids(story.state) == ["u", "t"]
    assert story.walk.texts[story.state.index["t"].version or ""] == ""


# --- locked, unread and without text ---


@pytest.mark.parametrize("type_", ["chat", "session", "system_prompt"])
def test_what_is_locked_enters_no_set(type_: str) -> None:
    story = Story().says().acts(PoolAct("activate", "x", type_, "text", "v", 3)).hand("pin", "x")
    assert story.state.sets() == {"active_set": (), "inactive_set": (), "pinned_set": ()}


@pytest.mark.parametrize("content", ["unread", "none"])
def test_without_a_text_nothing_becomes_active(content: str) -> None:
    story = Story().says().acts(PoolAct("activate", "x", "file", content, path="/repo/x"))  # type: ignore[arg-type]
    assert story.state.sets() == {"active_set": (), "inactive_set": ("x",), "pinned_set": ()}


def test_a_pinned_file_that_was_not_read_is_shown_as_soon_as_it_is() -> None:
    story = Story().says().acts(PoolAct("list", "x", "file", path="/repo/x")).hand("pin", "x")
    assert ids(story.state) == []
    story.acts(PoolAct("index", "x", "file", "text", "v", 3, "/repo/x"))
    assert ids(story.state) == ["x"]


def test_metadata_alone_can_be_loaded() -> None:
    state = Story().says().acts(PoolAct("list", "x", "file", "text", "v", 3, "/repo/x")).state
    assert state.sets()["inactive_set"] == ("x",)


def test_what_is_only_in_the_index_enters_the_pool_with_its_activation() -> None:
    story = Story().says().acts(PoolAct("index", "x", "file", "text", "v", 3, "/repo/x"))
    assert list(story.state.pool()) == []
    assert story.acts(PoolAct("activate", "x")).state.sets()["active_set"] == ("x",)


# --- references, news, epochs ---


def test_references_of_an_active_file_bring_in_what_they_name() -> None:
    story = Story().says().acts(PoolAct("index", "note-1", "note", "text", "v", 3, "/repo/texts/b.md"))
    assert story.state.index["note-1"].place is None
    story.calls("r", "read", "see [it](texts/b.md)\n", path="a.md")
    assert story.state.sets()["inactive_set"] == ("note-1",)


def test_changes_are_told_where_they_happened_until_an_epoch_begins() -> None:
    story = Story(ONE).says().calls("t1").says().calls("t2")
    told = [(one.kind, one.id, one.behind) for place in range(7) for one in story.state.news_at(place)]
    assert told == [
        ("listed", "t1", 3), ("activated", "t1", 3), ("deactivated", "t1", 4), ("listed", "t2", 6), ("activated", "t2", 6)
    ]  # fmt: skip
    story.acts(PoolAct("epoch"))
    assert [one.id for one in story.state.listed()] == ["t1", "t2"]
    assert not [one for place in range(9) for one in story.state.news_at(place)]
    before = list(story.state.listed())
    story.calls("t3")
    assert list(story.state.listed()) == before
    assert [one.id for one in story.state.pool(story.state.epoch.listed)] == ["t3"]


# --- paths in outputs ---

LONG = "total 8\ndrwxr-xr-x 2 u g 4096 Jan  1 10:00 src\n-rw-r--r-- 1 u g 12 Jan  1 10:00 a b.py\n-rw-r--r-- 1 u g 12 Jan  1 10:00 Makefile\n"


@pytest.mark.parametrize(
    ("tool", "arguments", "output", "paths"),
    [
        ("ls", '{"path":"src"}', "a.py\nlib\nb.txt\n", ["/repo/src/a.py", "/repo/src/b.txt"]),
        ("bash", '{"command":"ls src"}', "a.py\n", ["/repo/src/a.py"]),
        ("bash", '{"command":"ls -l"}', LONG, ["/repo/Makefile"]),
        ("find", "{}", "./a.py\nsrc/b.c\nsrc\n", ["/repo/a.py", "/repo/src/b.c"]),
        ("grep", "{}", "a.py:3:import x\nsrc/b.py-4-y\nb.c:int x;\n", ["/repo/a.py", "/repo/b.c"]),
        ("bash", '{"command":"grep -rn x src"}', "src/a.py:3:x = 1\n", ["/repo/src/a.py"]),
        ("bash", '{"command":"git ls-files"}', "a.py\nb/c.py\n", ["/repo/a.py", "/repo/b/c.py"]),
        ("bash", '{"command":"ls | head"}', "a.py\n", []),
        ("bash", '{"command":"make test"}', "a.py\n", []),
        ("bash", '{"command":"echo \'"}', "a.py\n", []),
    ],
)
def test_an_output_names_files(tool: str, arguments: str, output: str, paths: list[str]) -> None:
    op = "exec" if tool == "bash" else "list" if tool == "ls" else "search"
    assert list(found_paths(op, ToolCall("c", tool, arguments), output, "/repo")) == paths  # type: ignore[arg-type]


def test_an_output_brings_in_a_bounded_number_of_files() -> None:
    output = "\n".join(f"f{number}.py" for number in range(1000))
    assert len(found_paths("search", ToolCall("c", "find", "{}"), output, "")) == MOST_PATHS


# --- laws over random sessions ---

PATHS = ("a.py", "b.py", "c.md")
STEPS = st.one_of(
    st.tuples(st.just("says"), st.just(0)),
    st.tuples(st.just("works"), st.integers(0, 5)),
    st.tuples(st.just("reads"), st.integers(0, 8)),
    st.tuples(st.just("writes"), st.integers(0, 8)),
    st.tuples(st.just("edits"), st.integers(0, 8)),
    st.tuples(st.just("lists"), st.just(0)),
    st.tuples(st.just("removes"), st.integers(0, 2)),
    st.tuples(st.just("activates"), st.integers(0, 20)),
    st.tuples(st.just("deactivates"), st.integers(0, 20)),
    st.tuples(st.just("pins"), st.integers(0, 20)),
    st.tuples(st.just("unpins"), st.integers(0, 20)),
    st.tuples(st.just("asks"), st.just(0)),
    st.tuples(st.just("compacts"), st.just(0)),
    st.tuples(st.just("epoch"), st.just(0)),
)


def take(story: Story, number: int, step: tuple[str, int]) -> None:
    what, which = step
    path = PATHS[which % 3]
    met = sorted(story.state.index) or ["nothing"]
    chosen = met[which % len(met)]
    moves: dict[str, Callable[[], Story]] = {
        "says": story.says,
        "works": lambda: story.calls(f"w{number}", output="x" * which),
        "reads": lambda: story.calls(f"r{number}", "read", f"text {which}\nsee [[b]] [c](c.md)\n", path=path),
        "writes": lambda: story.calls(f"p{number}", "write", "ok", path=path, content=f"text {which}\n"),
        "edits": lambda: story.calls(f"e{number}", "edit", "ok", path=path, oldText="text", newText=f"word {which}"),
        "lists": lambda: story.calls(f"l{number}", "ls", "a.py\nb.py\nc.md\nd.py\n"),
        "removes": lambda: story.calls(f"d{number}", "bash", "", command=f"rm {path}"),
        "activates": lambda: story.acts(PoolAct("activate", chosen)),
        "deactivates": lambda: story.acts(PoolAct("deactivate", chosen)),
        "pins": lambda: story.hand("pin", chosen),
        "unpins": lambda: story.hand("unpin", chosen),
        "asks": story.asks,
        "compacts": story.compacts,
        "epoch": lambda: story.acts(PoolAct("epoch")),
    }
    moves[what]()


def check(state: PoolState, texts: object, rules: PoolRules) -> None:
    active = ids(state)
    pool = [one.id for one in state.pool()]
    assert len(active) == len(set(active))  # never two versions of one object
    assert len(pool) == len(set(pool)) == state.size
    assert set(active) <= set(pool) <= set(state.index)
    assert set(state.pinned) <= set(pool)
    for one in state.active:
        meant = state.index[one.id]
        assert (meant.content, meant.version) == ("text", one.version)  # and that is the newest
        assert meant.version in texts  # type: ignore[operator]
        assert one.id not in state.put_away
    unpinned = [one for one in state.active if one.id not in state.pinned]
    by_window = {one for slot in state.window for one in slot.ids}
    assert len([one for one in unpinned if one.id not in by_window]) <= rules.by_hand
    assert len(state.window) <= rules.recent_calls * rules.recent_turns
    sets = state.sets()
    assert sorted([*sets["active_set"], *sets["inactive_set"]]) == sorted(pool)


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=25), st.sampled_from([PoolRules(), PoolRules(1, 1, 1), PoolRules(2, 2, 0)]), st.data())
def test_laws_of_pools(steps: list[tuple[str, int]], rules: PoolRules, data: st.DataObject) -> None:
    story = Story(rules)
    for number, step in enumerate(steps):
        take(story, number, step)
    walks = list(story.walks())
    told: list[tuple[PoolChange, ...]] = []
    for body, (before, after) in zip(story.bodies[1:], pairwise(walks), strict=True):
        check(after.state, after.texts, rules)
        assert set(before.state.index) <= set(after.state.index)  # nothing leaves the index
        listed = [one.id for one in before.state.pool()]
        assert [one.id for one in after.state.pool(0, len(listed))] == listed  # or its place in the pool
        if before.state.epoch.number == after.state.epoch.number:
            assert list(before.state.listed()) == list(after.state.listed())  # frozen within an epoch
        if isinstance(body, RequestSent):
            told = [before.state.news_at(place) for place in range(before.state.messages + 1)]
        told = told if before.state.epoch.number == after.state.epoch.number else []
        # what a request told stays as it was told
        assert [after.state.news_at(place) for place in range(len(told))] == told
    # the state is that of the branch alone: folded whole as step by step, also after a way back and on
    assert story.walk == walks[-1]
    place = data.draw(st.integers(0, len(walks) - 1))
    other = PoolFold("story", rules=rules)
    walk = walks[place]
    for body in story.bodies[place + 1 :]:
        walk = other.step(walk, body)
    assert walk == walks[-1]


@settings(max_examples=30)
@given(
    st.lists(STEPS, min_size=1, max_size=15),
    st.lists(STEPS, min_size=1, max_size=8),
    st.lists(STEPS, max_size=4),
    st.integers(0, 40),
)
def test_each_branch_of_a_tree_has_its_own_pools(
    steps: list[tuple[str, int]], other: list[tuple[str, int]], later: list[tuple[str, int]], place: int
) -> None:
    story = Story()
    journal: Journal[int] = Journal(0, lambda state, _: state)
    fold = Fold(journal, story.fold.start(HOME), story.fold.step, takes=TAKES)
    leaf = grow(journal, None, story, 0, steps)
    names = [one.id for one in journal]
    back = place % len(names)
    branch = Story(bodies=[journal.entry(name).body for name in names[: back + 1]])
    end = grow(journal, names[back], branch, 100, other)
    assert (fold[end], fold[leaf]) == (branch.walk, story.walk)
    leaf = grow(journal, leaf, story, 200, later)  # the first branch goes on
    assert (fold[leaf], fold[end], fold[names[back]]) == (
        story.walk,
        branch.walk,
        story.fold.walk(branch.bodies[: back + 1], HOME),
    )


def grow(journal: Journal[int], leaf: str | None, story: Story, first: int, steps: list[tuple[str, int]]) -> str:
    """Take steps behind a leaf, and return the new leaf."""
    known = 0 if leaf is None else len(story.bodies)
    for number, step in enumerate(steps):
        take(story, first + number, step)
    for body in story.bodies[known:]:
        leaf = journal.append(leaf, body).id
    assert leaf is not None
    return leaf
