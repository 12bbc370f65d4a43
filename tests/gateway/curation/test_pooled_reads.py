"""What stands in a pooled window in place of the reads of a coding agent."""

import json
from pathlib import Path
from typing import Any

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.gateway.pages.session_views import EngineLooker
from pagein.gateway.pages.window_orders import EngineHand
from pagein.tools.brief import OFFERS as RECALL
from pagein.tools.short_pool_tools import OFFERS

Wire = dict[str, Any]
TOOLS = [
    {"name": name, "input_schema": {"type": "object", "properties": {key: {} for key in fields}}}
    for name, fields in {
        "Read": ("file_path", "offset", "limit"),
        "Bash": ("command", "timeout", "description"),
        "Edit": ("file_path", "old_string", "new_string", "replace_all"),
        "Write": ("file_path", "content"),
    }.items()
]
LINES = [f"LINE_{number} = {number}" for number in range(60)]
SHOWN = "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(LINES, 1))


def read(number: int, path: str, more: str = "") -> tuple[Wire, str]:
    return {"type": "tool_use", "id": f"r{number}", "name": "Read", "input": {"file_path": path}}, SHOWN + more


def run(number: int, command: str) -> tuple[Wire, str]:
    return {"type": "tool_use", "id": f"b{number}", "name": "Bash", "input": {"command": command}}, "done"


def results(engine: Engine, *calls: tuple[Wire, str]) -> tuple[dict[str, str], str]:
    """The results of one reply's calls as the model gets them, and the whole request."""
    messages: list[Wire] = [{"role": "user", "content": "look at it"}]
    told = [{"type": "tool_result", "tool_use_id": call["id"], "content": text} for call, text in calls]
    for items in (
        (),
        ({"role": "assistant", "content": [call for call, _ in calls]}, {"role": "user", "content": told}),
    ):
        messages += items
        body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": TOOLS, "messages": messages}
        made = engine.prepare(json.dumps(body).encode(), "anthropic", at=len(messages), hint="one", offers=OFFERS)
        assert made.failure is None
    last = json.loads(made.body)["messages"][-1]["content"]
    return {one["tool_use_id"]: one["content"] for one in last if one["type"] == "tool_result"}, made.body.decode()


def opened() -> Engine:
    return pagein.open(":memory:", settings=Settings(layout="pooled"))


def test_the_reference_of_each_read_of_a_long_reply_names_its_file() -> None:
    with opened() as engine:
        shown, body = results(engine, *(read(number, f"/repo/f{number}.py") for number in range(7)))
    for text in shown.values():
        file = text.rpartition("object_ref id=")[2]
        assert f"ACTIVE_CONTENT id={file}\\nLINE_0" in body


def test_a_read_whose_file_changed_before_the_next_request_stands_whole() -> None:
    with opened() as engine:
        shown, _ = results(engine, read(0, "/repo/a.py"), run(1, "sed -i s/LINE/ROW/ /repo/a.py"))
    assert shown["r0"] == SHOWN


def test_what_a_client_tells_beside_the_lines_of_a_file_stays() -> None:
    words = "<system-reminder>\nThe user says: stop after this file.\n</system-reminder>"
    with opened() as engine:
        shown, body = results(engine, read(0, "/repo/a.py", f"\n\n{words}\n"))
    assert shown["r0"].startswith("toolcall_ref id=r0")
    assert shown["r0"].endswith(f"\n{words}")
    assert body.count("LINE_59") == 1


def test_the_page_tells_which_results_are_references_and_which_of_them_are_shown() -> None:
    with opened() as engine:
        results(engine, read(0, "/repo/a.py"), run(1, "make"))
        objects = EngineLooker(engine, lambda _: ()).inside("one")["objects"]
        assert [(one["call"], one["form"], one["marks"]) for one in objects] == [
            ("r0", "reference", ["shown"]),
            ("b1", "whole", []),
        ]
        told = EngineHand(engine).result("one", "r0")
    assert (told["form"], told["stored"]) == ("reference", SHOWN)
    assert "below ACTIVE_CONTENT" in told["why"]


def test_a_file_that_a_person_activates_is_shown_as_it_is_now(tmp_path: Path) -> None:
    file, settings = tmp_path / "a.py", Settings(layout="pooled")
    file.write_text("\n".join(LINES) + "\n")
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path, settings=settings) as engine:
        _, before = results(engine, read(0, str(file)))
        file.write_text("ROW = 1\n" * 60)
        with pagein.open(tmp_path / "s.pagein", workspace=tmp_path) as other:
            assert other.session("one").pools.activate(str(file)).text.startswith("Activated")
        call, told = read(0, str(file))
        messages: list[Wire] = [{"role": "user", "content": "look at it"}, {"role": "assistant", "content": [call]}]
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": told}]}
        )
        messages += [{"role": "assistant", "content": "I see."}, {"role": "user", "content": "Go on."}]
        body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": TOOLS, "messages": messages}
        made = engine.prepare(json.dumps(body).encode(), "anthropic", at=9, hint="one", offers=OFFERS)
    news = made.body.decode().rpartition("Go on.")[2]
    assert "ROW = 1" not in before
    assert "ROW = 1\\nROW = 1" in news
    assert "changed_ref" not in news


def test_the_tools_for_pools_and_the_list_of_files_stay_behind_a_compaction() -> None:
    call, text = read(0, "/repo/a.py")
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
    asked: list[Wire] = [{"role": "user", "content": "look at it"}]
    summary: Wire = {"role": "user", "content": "This session is being continued. a.py was read."}
    heads = (
        asked,
        [*asked, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}],
        [summary],
        [summary, {"role": "assistant", "content": "I go on."}, {"role": "user", "content": "Do."}],
    )
    sent: list[Wire] = []
    with opened() as engine:
        for at, messages in enumerate(heads):
            body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": TOOLS, "messages": messages}
            made = engine.prepare(json.dumps(body).encode(), "anthropic", at=at, hint="one", offers=(*RECALL, *OFFERS))
            assert made.failure is None
            sent.append(json.loads(made.body))
    assert [[one["name"] for one in told["tools"][4:]] for told in sent] == [[one.name for one in OFFERS]] * len(heads)
    legend = sent[2]["messages"][0]["content"][0]["text"]
    assert "\n\nMETADATA_POOL\n- id=" in legend, "the path of what is shown"
    assert "ACTIVE_CONTENT id=" in json.dumps(sent[2]["messages"])
