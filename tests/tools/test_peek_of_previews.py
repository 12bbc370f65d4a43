"""What stands in the window as a preview comes back by one call: behind its head, by line, or by a pattern."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.intake.test_recall_tools import answered, called

from pagein import wiring
from pagein.engine.engine import Engine
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.reads.session_reads import ReadResult
from pagein.policy.reads.echo_guard import OwnTexts
from pagein.policy.stubs.previews import Previews, behind_head, preview
from pagein.policy.stubs.recall_ways import SHELL, TOOLS, Way
from pagein.tools.brief import answer_call as answer

ID = "pg-01234567-89abcdef"
ROWS = "".join(f"row {place} of what was asked for, and more of it\n" for place in range(3000))
OLD = (
    f"head\n[pagein: {ID} | Bash | 9 tokens | head - 3 lines]\n"
    f'[4 characters in the middle are kept and not shown. Use peek("{ID}") to view them, or search to find specific content.]\n[the end:]\ntail'
)


def asked(engine: Engine, prepared: PreparedRequest, tool: str, **arguments: object) -> ReadResult:
    return engine.behind(prepared, lambda session: answer(session, tool, arguments, "toolu_ask"))


def test_a_peek_goes_on_where_the_preview_stops_and_its_hints_lead_to_the_end(tmp_path: Path) -> None:
    with wiring.open(tmp_path) as engine:
        called(engine, answered(system="Know this. " * 20_000), 0.0)
        prepared = called(engine, answered(ROWS, system="Know this. " * 20_000), 1.0)
        (one,) = prepared.previewed
        head = behind_head(one.stub, one.object_id, ROWS)
        assert one.stub.startswith(ROWS[:head])
        first = asked(engine, prepared, "peek", id=one.object_id)
        assert first.text.startswith(ROWS[head : head + 1000])
        assert first.details["offset"] == head
        read, following = ROWS[:head], {"offset": head}
        while following:
            part = asked(engine, prepared, "peek", id=one.object_id, length=20_000, **following)
            where: dict[str, Any] = dict(part.details)
            read, following = read + ROWS[where["offset"] : where["end"]], where["next"] or {}
        assert read == ROWS
        whole = asked(engine, prepared, "peek", id=one.object_id, offset=0, length=10)
        assert whole.text.startswith(ROWS[:10])
        by_line = asked(engine, prepared, "peek", id=one.object_id, lines=2)
        assert by_line.text.startswith(ROWS[head:].partition("\n")[0])
        assert asked(engine, prepared, "peek", id=one.object_id, line=1, lines=1).text.startswith("row 0 of")


def test_what_the_preview_says_to_do_at_once_gives_a_line_and_a_pattern_by_one_call(tmp_path: Path) -> None:
    with wiring.open(tmp_path) as engine:
        called(engine, answered(system="Know this. " * 20_000), 0.0)
        prepared = called(engine, answered(ROWS, system="Know this. " * 20_000), 1.0)
        (one,) = prepared.previewed
        assert f'peek("{one.object_id}", line=' in one.stub
        assert f'search("words or /regex/", scope=["{one.object_id}"])' in one.stub
        assert "row 1999 of" in asked(engine, prepared, "peek", id=one.object_id, line=2000, lines=1).text
        assert "row 1999 of" in asked(engine, prepared, "search", pattern="/row 199\\d of/", scope=[one.object_id]).text


def test_what_left_as_a_stub_or_stands_whole_is_shown_from_its_beginning(tmp_path: Path) -> None:
    with wiring.open(tmp_path) as engine:
        called(engine, answered(system="Know this. " * 20_000), 0.0)
        prepared = called(engine, answered(ROWS, system="Know this. " * 20_000), 1.0)
        (one,) = prepared.previewed
        session = engine.session(prepared.session)
        session.hand.drop(one.object_id)
        session.hand.epoch()
        later = called(engine, answered(ROWS, "ok", system="Know this. " * 20_000), 2.0)
        assert later.opened is not None
        assert asked(engine, later, "peek", id=one.object_id).text.startswith("row 0 of")


def test_a_preview_of_an_earlier_version_stays_as_it_was_and_is_gone_on_from_all_the_same() -> None:
    assert behind_head(OLD, ID, "head\nmid\ntail") == 5
    assert list(OwnTexts(lambda _: True).echoes(OLD))


@pytest.mark.parametrize("text", [ROWS, "x" * 20_000, "a\n" + "y" * 20_000])
def test_a_preview_says_how_to_recall_in_the_words_of_the_models_way(text: str) -> None:
    shown = preview(ID, "Bash", 5000, text, Previews(), TOOLS)
    line = text.count("\n", 0, shown.head) + 1
    assert (
        f'Use peek("{ID}") to view them, or search to find specific content. At once: peek("{ID}", line={line}, lines=40) '
        f'for lines by number, search("words or /regex/", scope=["{ID}"]) for a pattern.]'
    ) in shown.text
    theirs = preview(ID, "Bash", 5000, text, Previews(), Way("mcp__pagein__peek", "mcp__pagein__search")).text
    assert theirs.replace("mcp__pagein__", "") == shown.text
    assert theirs.count("peek(") == theirs.count("mcp__pagein__peek(") == 2
    told = preview(ID, "Bash", 5000, text, Previews(), SHELL).text
    assert f"Run `pagein peek {ID}` to view them, or `pagein search` to find specific content." in told
    assert f"At once: `pagein peek {ID} --line {line} --lines 40` for lines by number" in told
    assert f"`pagein search -e 'REGEX' --in {ID}` for a pattern.]" in told
    assert "peek(" not in told


@given(st.text(alphabet="ab\n", min_size=50, max_size=400), st.integers(10, 300))
def test_what_the_head_and_a_peek_show_is_all_of_the_text(text: str, shown: int) -> None:
    made = preview(ID, "Bash", 50, text, replace(Previews(), shown=shown), TOOLS)
    start = behind_head(made.text, ID, text)
    assert made.text.startswith(text[:start])
    assert start in (made.head, made.head + 1)  # a line feed of the text's own is where ours would stand
    assert behind_head(made.text, ID, "z" + text) == 0
    assert behind_head("", ID, text) == behind_head("a stub", ID, text) == 0
