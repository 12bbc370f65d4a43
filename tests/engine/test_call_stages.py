"""The way of one model call: its stages in their order, and how many modules it enters. Counted, never timed."""

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import pagein
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.curation.guarded_curator import CuratedRequest, CurationRequest
from pagein.model.messages import Usage
from pagein.providers.wire.streams.model_reply import ModelReply

CALLS = 50
LINE = "    return the value of the field as it was given, number {}\n"
TOOLS = {"Read": "file_path", "Bash": "command", "Edit": "file_path", "Write": "file_path", "Grep": "pattern"}
DECISION = (
    "resolve_branch",
    "defer_tools",
    "append_messages",
    "set_terms",
    "enter_previews",
    "evict_results",
    "insert_texts",
    "record_request",
    "choose_shown_once",
    "enter_tools",
)
SENDING = ("lay_out_window", "splice_changes", "place_breakpoints", "validate_request")
# Modules entered, and calls that cross from one module into another, at most. Where a change needs more, say why.
# Call 48 judges twelve reads by the odds of a quote: a module more, and 14 to 18 calls.
# The journal shares the texts of results with the objects made from them (`store.sql.packed_bytes`): 7 calls.
# Of a client whose results prove nothing only the calls are followed.
# The request before is followed in the journal, so that a cache miss is explained in the next process, too: 6 calls.
# The last request with each prompt prefix is followed, too: no recall tools enter while the client may go back to one. 5 to 10 calls.
# The journal stores sessions and entries in short forms (`store.sql.short_names`, with `sql_rows`): two modules, 3 calls.
# What a cache's minimum allows is looked at only where recall tools may enter: a call.
# A new blob is asked whether it is to be bundled (`store.sql.sql_bundles`): a module. A call more: a request as it goes out is made once for all that look at it.
# The places of messages have a module (`engine.message_index`): a module, 2 calls. The session is asked whether its journal was removed,
# and the store whether it has the last entry (`engine.session`): a module, 2 calls.
# A request waits for the report of the answer that it brings back (`engine.expected_reports`): a module, 2 calls.
# Tokens of prompts have a module (`engine.log.prompt_tokens`): a module, 3 calls.
# The client of a request is told in a module of its own (`engine.intake.client_profile`): a module.
# The names that clients give their sessions have a module (`providers.wire.session_names`): a module, 5 calls.
OF_ANY_CLIENT = (49, 166)
OF_A_KNOWN_CLIENT = (67, 342)


def test_the_stages_of_a_call_stand_in_their_order(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        stages = engine.session("one").traffic._stages
    assert tuple(one.__name__ for one in stages.decision) == DECISION
    assert tuple(one.__name__ for one in stages.sending) == SENDING


@pytest.mark.parametrize(("client", "most"), [("any", OF_ANY_CLIENT), ("known", OF_A_KNOWN_CLIENT)])
def test_a_call_that_decides_nothing_enters_few_modules(tmp_path: Path, client: str, most: tuple[int, int]) -> None:
    """Call 50 of a session of 200 KB. A client with tools that pagein knows gets its reads followed, and recall tools."""
    known = client == "known"
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        curator = EngineCurator(engine)
        for turns in range(CALLS - 1):
            observe(curator, prepare(curator, turns, known=known), turns)
        last = asked(CALLS - 1, known=known)
        assert len(last.body) > 200_000
        curated, entered, crossings = watched(lambda: curator.prepare(last))
    assert (curated.failure, curated.epoch, curated.replaced) == ("", "", 0)
    assert entered <= most[0]
    assert crossings <= most[1]


def watched(work: Callable[[], CuratedRequest]) -> tuple[CuratedRequest, int, int]:
    """What comes out, the modules of pagein whose code ran, and the calls from one of them into another.

    A generator that goes on counts as a call. Methods that dataclasses make for themselves are in no file.
    """
    entered: set[str] = set()
    crossings: Counter[tuple[str, str]] = Counter()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (module := module_of(frame)):
            entered.add(module)
            caller = module_of(frame.f_back)
            if caller and caller != module:
                crossings[caller, module] += 1

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        found = work()
    finally:
        sys.setprofile(before)
    return found, len(entered), sum(crossings.values())


def module_of(frame: FrameType | None) -> str:
    name = "" if frame is None or frame.f_code.co_filename.startswith("<") else str(frame.f_globals.get("__name__"))
    return name if name.startswith("pagein.") else ""


def prepare(curator: EngineCurator, turns: int, *, known: bool) -> CuratedRequest:
    curated = curator.prepare(asked(turns, known=known))
    assert (curated.failure, curated.epoch) == ("", "")
    return curated


def observe(curator: EngineCurator, curated: CuratedRequest, turns: int) -> None:
    tokens = len(curated.body) // 4
    usage = Usage(fresh=3, read=tokens - 1200 if turns else 0, written=1200 if turns else tokens, output=50)
    assert not curator.observe(curated, ModelReply(first=usage)).failure


def asked(turns: int, *, known: bool) -> CurationRequest:
    return CurationRequest(body(turns, known=known), "anthropic", None, 1000.0 + 10 * turns)


def body(turns: int, *, known: bool) -> bytes:
    """A request of a client behind so many reads of files, with its cache breakpoints."""
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "make it work"}]}]
    for turn in range(turns):
        call = {"type": "tool_use", "id": f"c{turn}", "name": "Read", "input": {"file_path": f"/w/part_{turn}.py"}}
        text = "".join(f"{line:6}\t" + LINE.format(100 * turn + line) for line in range(1, 60))
        said.append({"role": "assistant", "content": [{"type": "text", "text": f"now {turn}"}, call]})
        said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{turn}", "content": text}]})
    mark = {"cache_control": {"type": "ephemeral"}}
    said[-1] = {**said[-1], "content": [{**said[-1]["content"][-1], **mark}]}
    tools = [
        {
            "name": name if known else f"my_{name.lower()}",
            "description": "what it is for " * 20,
            "input_schema": {"type": "object", "properties": {argument: {"type": "string"}}},
        }
        for name, argument in TOOLS.items()
    ]
    fields = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1000,
        "stream": True,
        "system": [{"type": "text", "text": "be good " * 100, **mark}],
        "tools": tools,
        "metadata": {"user_id": "user_x_account__session_abc"},
    }
    return json.dumps({**fields, "messages": said}).encode()
