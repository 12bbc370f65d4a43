"""Prompts that a program assembles from files, symbol entries and history: through the library, to a provider and back."""

import json
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pagein
from pagein.assembly import HistoryMessage, PromptContents, tiered
from pagein.engine.session import Session
from pagein.errors import BadInput, BadSetting
from pagein.model.journal_notes import OtherNote
from pagein.policy.tiers.stability_file import decode_stability
from pagein.providers.wire import check_body
from pagein.simulator import SimulatedProvider

MODEL = "claude-sonnet-4-5"
FILES = {f"src/{name}.py": f"def {name}():\n    return 1\n" * 60 for name in "abcd"}
SYMBOLS = {"src/a.py": "f a", "lib/z.py": "f z"}


def contents(number: int = 0, **changes: str) -> PromptContents:
    said = tuple(
        one
        for turn in range(number)
        for one in (HistoryMessage("user", f"asked {turn}"), HistoryMessage("assistant", f"answer {turn}"))
    )
    files = {**FILES, **{f"src/{name}.py": text for name, text in changes.items()}}
    return PromptContents(
        prompt=f"asked {number}", system="You fix bugs.", files=files, symbols=SYMBOLS, tree="src", history=said
    )


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    asked = Request(f"{url}/v1/messages", json.dumps(body).encode(), {"content-type": "application/json"})  # noqa: S310
    with urlopen(asked) as answer:  # noqa: S310 -- always HTTP
        reply: dict[str, Any] = json.load(answer)
    return reply


def test_a_conversation_with_a_provider_is_accepted_and_read_from_the_cache(tmp_path: Path) -> None:
    with (
        SimulatedProvider([[{"text": "fine"}]] * 20) as provider,
        pagein.open(tmp_path / "s") as engine,
    ):
        prompts = tiered(MODEL, session=engine.session("pinned"))
        for number in range(5):
            edited = {"d": "changed\n"} if number >= 3 else {}
            request = prompts.assemble(contents(number, **edited)).request
            reply = post(provider.url, request)
            assert reply["content"] == [{"type": "text", "text": "fine"}]
        bill, requests = provider.bill(), provider.requests
    assert (bill.requests, bill.refused) == (5, 0)
    usages = [record.usage for record in requests]
    assert [usage.read > 0 for usage in usages if usage is not None] == [False, True, True, True, True]
    assert usages[2] is not None
    assert usages[2].written < 60  # the words alone; the files were read
    assert usages[2].fresh < 60


def session_states(session: Session) -> object:
    return tiered(MODEL, session=session).tiers


def test_another_process_goes_on_with_the_same_tiers_and_says_that_it_is_new(tmp_path: Path) -> None:
    store = tmp_path / "s.pagein"
    with pagein.open(store) as engine:
        prompts = tiered(MODEL, session=engine.session("pinned"))
        for number in range(4):
            prompts.assemble(contents(number))
        before = prompts.tiers
        expected = prompts.assemble(contents(4)).request
    with pagein.open(store) as engine:
        session = engine.session("pinned")
        session.move(session.journal.branch(session.leaf)[-2].id)
        again = tiered(MODEL, session=session)
        assert again.tiers == before
        done = again.assemble(contents(4))
        assert done.request == expected
        assert done.ripple  # the first request after a restart
        assert not again.assemble(contents(5)).ripple


def test_tiers_of_an_earlier_process_are_compared_with_the_contents(tmp_path: Path) -> None:
    """A file that changed meanwhile is not taken for the cached one."""
    with pagein.open(tmp_path / "s.pagein") as engine:
        tiered(MODEL, session=engine.session("pinned")).assemble(contents())
    with pagein.open(tmp_path / "s.pagein") as engine:
        done = tiered(MODEL, session=engine.session("pinned")).assemble(contents(1, b="new"))
    assert done.tiers.tier("src/b.py") == "active"
    assert [block.text for block in done.prompt.blocks if "src/b.py" in block.text] == [
        "# Files in work\n\n## src/b.py\n\n```\nnew\n```"
    ]


def test_each_branch_has_its_own_tiers() -> None:
    with pagein.open(":memory:") as engine:
        session = engine.session("pinned")
        prompts = tiered(MODEL, session=session)
        prompts.assemble(contents())
        root, here = session.leaf, prompts.tiers
        prompts.assemble(contents(1, a="other"))
        elsewhere = prompts.tiers
        session.move(root)
        assert prompts.tiers == here != elsewhere
        forked = engine.session("pinned").fork("other")
        assert session_states(forked) == here


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.booleans()), max_size=12))
def test_folding_the_journal_gives_the_state_that_the_process_had(turns: list[tuple[str, bool, bool]]) -> None:
    with pagein.open(":memory:") as engine:
        session = engine.session("pinned")
        prompts = tiered(MODEL, session=session)
        edits: dict[str, str] = {}
        at = 0.0
        for number, (name, edited, pause) in enumerate(turns):
            edits |= {name: f"{name} {number}"} if edited else {}
            at += 1000.0 if pause else 1.0
            prompts.assemble(contents(number, **edits), modified=[f"src/{name}.py"] if edited else [], at=at)
            assert session_states(session) == prompts.tiers


def test_the_journal_grows_by_what_changed() -> None:
    with pagein.open(":memory:") as engine:
        session = engine.session("pinned")
        prompts = tiered(MODEL, session=session)
        for number in range(6):
            prompts.assemble(contents(number))
        sizes = [len(entry.body.data) for entry in session.journal.branch(session.leaf)]  # type: ignore[union-attr]
    assert max(sizes[2:]) < 200 < sizes[0]


def test_no_text_and_no_bare_hash_of_it_is_journaled() -> None:
    with pagein.open(":memory:") as first, pagein.open(":memory:") as second:
        notes = []
        for engine in (first, second):
            session = engine.session("pinned")
            tiered(MODEL, session=session).assemble(contents(1))
            notes.append("".join(str(entry.body) for entry in session.journal.branch(session.leaf)))
        assert "return 1" not in notes[0]
        assert notes[0] != notes[1]  # digests are keyed with each store's secret


def test_a_note_of_a_newer_version_begins_anew() -> None:
    with pagein.open(":memory:") as engine:
        session = engine.session("pinned")
        prompts = tiered(MODEL, session=session)
        prompts.assemble(contents())
        session.note(OtherNote("prompt.tiers", '{"rules":{"promotion":"ripple","levels":9},"seen":[["a","b",1.0]]}'))
        assert not session_states(session).items  # type: ignore[attr-defined]
        assert prompts.assemble(contents()).tiers.order


def test_the_file_of_the_seed_design_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / ".aicoder" / "cache_stability.json"
    prompts = tiered(MODEL, rules="seed", stability_file=path)
    for number in range(6):
        done = prompts.assemble(contents(number))
    assert json.loads(path.read_text())["response_count"] == 6
    assert {done.tiers.tier(name) for name in FILES} == {"L3"}
    again = tiered(MODEL, rules="seed", stability_file=path)
    assert again.tiers.by_tier() == done.tiers.by_tier()
    assert again.assemble(contents(6)).tiers.tier("src/a.py") == "L3"
    path.write_text("{")
    assert tiered(MODEL, rules="seed", stability_file=path).tiers == decode_stability("")


def test_a_file_that_cannot_be_written_fails_no_prompt(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    prompts = tiered(MODEL, rules="seed", stability_file=tmp_path / "taken" / "s.json")
    assert prompts.assemble(contents()).tiers.responses == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_a_rewritten_history_begins_anew(restarted: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path = tmp_path / "s.json"
    prompts = tiered(MODEL, rules="seed", stability_file=path)
    for _ in range(6):
        prompts.assemble(contents(8, a="x"))
    old = prompts.assemble(contents(8, a="y"))
    assert old.tiers.tier("history:0") == "L3"
    if restarted:  # another conversation about the same files, on the next day
        prompts = tiered(MODEL, rules="seed", stability_file=path)
    short = PromptContents(
        prompt="go on", files=FILES, history=(HistoryMessage("user", "summary"), HistoryMessage("assistant", "ok"))
    )
    done = prompts.assemble(short)
    assert {key: done.tiers.tier(key) for key in done.tiers.items if key.startswith("history:")} == {
        "history:0": "active",
        "history:1": "active",
    }


def test_the_same_contents_for_chat_completions() -> None:
    prompts = tiered("gpt-5.5", api="openai_chat")
    request = prompts.assemble(contents(2)).request
    assert check_body(request, "openai_chat") == []
    assert "cache" not in json.dumps(request)


@pytest.mark.parametrize(
    ("given_contents", "words"),
    [
        (PromptContents(prompt=" "), "the prompt is empty"),
        (PromptContents(prompt="?", files={"url:x": ""}), "is no path of a file"),
        (PromptContents(prompt="?", history=(HistoryMessage("assistant", "hm"),)), "begins with the user's words"),
    ],
)
def test_contents_of_which_no_request_can_be_made(given_contents: PromptContents, words: str) -> None:
    prompts = tiered(MODEL)
    with pytest.raises(BadInput, match=words):
        prompts.assemble(given_contents)
    assert prompts.tiers.responses == 0


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="preset 'seed'"):
        tiered(MODEL, stability_file=tmp_path / "s.json")
    with pytest.raises(BadSetting, match="one of seed, pagein"):
        tiered(MODEL, rules="other")


def test_a_pause_longer_than_the_cache_lets_everything_move() -> None:
    prompts = tiered(MODEL)
    prompts.assemble(contents(40), at=0.0)
    for second in range(1, 8):
        waiting = prompts.assemble(contents(40, a="x" * 50), at=float(second)).tiers
    assert "src/a.py" not in waiting.order
    assert "src/a.py" in prompts.assemble(contents(40, a="x" * 50), at=1000.0).tiers.order


def test_the_first_order_comes_from_the_symbol_map(tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter")
    from pagein.archive import open_symbols
    from pagein.workspace.symbols.symbol_reader import SymbolReader

    files = {
        "base.py": "def connect():\n    return 1\n" + "# what everything stands on\n" * 400,
        "left.py": "from base import connect\nconnect()\nconnect()\n" + "# left\n" * 400,
        "right.py": "from base import connect\nconnect()\n" + "# right\n" * 400,
        "alone.py": "print(1)\n" + "# alone\n" * 400,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with open_symbols(workspace=tmp_path, jobs=1) as index:
        index.refresh()
        references = SymbolReader(index).references_into()
    first = tiered(MODEL).assemble(PromptContents("Hello?", files=files), references=references)
    unknown = tiered(MODEL).assemble(PromptContents("Hello?", files=files))
    assert references == {"base.py": 5}
    assert min(first.tiers.items, key=lambda key: first.tiers.items[key].tier) == "base.py"
    assert first.request != unknown.request


def test_a_preset_takes_the_size_of_a_cached_block_from_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def caches_history(settings: pagein.Settings | None = None) -> bool:
        prompts = tiered(MODEL, rules="seed", settings=settings)
        for number in range(8):
            done = prompts.assemble(contents(number))
        return any(done.tiers.tier(key) != "active" for key in done.tiers.items if key.startswith("history:"))

    monkeypatch.chdir(tmp_path)
    assert not caches_history()
    assert caches_history(pagein.Settings(cache_min_tokens=10))
    monkeypatch.setenv("PAGEIN_CACHE_MIN_TOKENS", "10")
    assert caches_history()
    (tmp_path / "pagein.toml").write_text("cache_buffer_multiplier = 1000.0")
    assert not caches_history()
    monkeypatch.setenv("PAGEIN_CACHE_BUFFER_MULTIPLIER", "-1")
    with pytest.raises(BadSetting, match="cache_buffer_multiplier"):
        caches_history()
