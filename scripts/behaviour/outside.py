"""Behaviour visible from outside: the gateway over HTTP, the bill of a replay, commands, settings, texts for people."""

import io
import json
import os
import re
import tarfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from scripts.behaviour import surfaces
from scripts.behaviour.conversations import FORMATS, MODELS, Format, Json
from scripts.behaviour.records import Witness
from scripts.behaviour.stillness import World

_PATHS: Final[dict[Format, str]] = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
}
_RULE: Final = re.compile(r"[A-Z]\d+")
_STEPS: Final = 14
_PAUSE: Final = 40.0
_LONG_PAUSE: Final = 4000.0


# --- the gateway ---


def watch_gateway(world: World, witness: Witness) -> None:
    """Conversations in three formats, streamed and not, with recalls that the gateway answers itself."""
    for wire in FORMATS:
        for streamed in (False, True):
            for manner, settings in (("usual", ""), ("eager", "keep_calls = 1\nkeep_calls_free = 0\nwindow = 9000")):
                with world.configured(settings):
                    kind = "streamed" if streamed else "whole"
                    _conversation(world, wire, witness, f"gateway/{wire}/{kind}/{manner}", streamed=streamed)


def _turns() -> list[Any]:
    work: list[Any] = [
        [{"text": f"Step {one}."}, {"tool": "shell", "args": {"command": f"list {one}"}}] for one in range(_STEPS)
    ]
    recall = [
        {"capture": {"id": r"(pg-[0-9a-f]{8}-[0-9a-f]{8})"}},
        {"tool": "peek", "args": {"id": "{{id}}", "line": 21, "lines": 2}},
        {"otherwise": [{"text": "All is still there."}]},
    ]
    return [*work[:7], recall, *work[7:], [{"text": "Done."}]]


def _listing(number: int) -> str:
    return "".join(f"list {number}: row {row}, sum {row * 7919 % 100_003}\n" for row in range(180))


def _conversation(world: World, wire: Format, witness: Witness, name: str, *, streamed: bool) -> None:
    clock = surfaces.SetClock()
    folder = world.scene("gateway")
    items: list[Json] = [{"role": "user", "content": "Check the listings."}]
    began = world.clock.at
    with surfaces.gateway(_turns(), folder, clock) as gateway:
        url = gateway.address + _PATHS[wire]
        for number in range(_STEPS + 1):
            clock.set(began + _PAUSE * number + (_LONG_PAUSE if number > _STEPS // 2 else 0))
            world.clock.set(clock.now())
            body = _body(wire, items)
            if streamed:
                witness.see(f"{name}/{number:02} stream", _posted(url, {**body, "stream": True}))
                gateway.rested(1)
            whole = _posted(url, body)
            witness.see(f"{name}/{number:02} answer", whole)
            gateway.rested(1)
            items += _next(wire, json.loads(whole.partition(b"\n")[2]), number)
        for number, data in enumerate(gateway.bodies()):
            witness.see(f"{name}/sent/{number:02}", data)


def _body(wire: Format, items: Sequence[Json]) -> Json:
    head: Json = {"model": MODELS[wire][0]}
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    if wire == "anthropic":
        mark = {"cache_control": {"type": "ephemeral"}}
        system = [{"type": "text", "text": "You check listings. " * 250, **mark}]
        tools = [{"name": "shell", "description": "Run.", "input_schema": schema}]
        return {**head, "max_tokens": 2000, "system": system, "tools": tools, "messages": [*items], **mark}
    if wire == "openai_chat":
        tools = [{"type": "function", "function": {"name": "shell", "parameters": schema}}]
        return {**head, "tools": tools, "messages": [{"role": "system", "content": "You check listings."}, *items]}
    tools = [{"type": "function", "name": "shell", "parameters": schema}]
    return {**head, "instructions": "You check listings.", "tools": tools, "input": [*items], "store": False}


def _next(wire: Format, answer: Json, number: int) -> list[Json]:
    """What stands behind an answer in the next request: itself, and the results of its calls."""
    text = _listing(number)
    if wire == "anthropic":
        content = answer["content"]
        results = [
            {"type": "tool_result", "tool_use_id": one["id"], "content": text}
            for one in content
            if one["type"] == "tool_use"
        ]
        return [{"role": "assistant", "content": content}, {"role": "user", "content": results or "Go on."}]
    if wire == "openai_chat":
        said = answer["choices"][0]["message"]
        calls = said.get("tool_calls") or []
        results = [{"role": "tool", "tool_call_id": one["id"], "content": text} for one in calls]
        return [said, *(results or [{"role": "user", "content": "Go on."}])]
    output = answer["output"]
    results = [
        {"type": "function_call_output", "call_id": one["call_id"], "output": text}
        for one in output
        if one["type"] == "function_call"
    ]
    return [*output, *(results or [{"role": "user", "content": "Go on."}])]


def _posted(url: str, body: Json) -> bytes:
    """Status and body of the answer."""
    headers = {"content-type": "application/json", "x-api-key": "none", "authorization": "Bearer none"}
    headers |= {"anthropic-version": "2023-06-01", "x-session-id": "compared"}
    request = Request(url, json.dumps(body).encode(), headers)  # noqa: S310 -- loopback
    try:
        with urlopen(request, timeout=60) as answer:  # noqa: S310 -- loopback
            return f"{answer.status} {answer.headers.get('x-pagein-warning', '')}\n".encode() + bytes(answer.read())
    except HTTPError as refused:
        with refused:
            return f"{refused.code}\n".encode() + refused.read()


# --- the bill ---


def watch_replay(root: Path, witness: Witness) -> None:
    """The bill over the sessions of the tests and the demo, and over the smallest of the corpus where it is there."""
    demo = ["examples/demo-session.jsonl.gz", "--jobs", "1", "--quiet"]
    _billed(witness, "replay/demo", root, [*demo, "--json", "--why", "--doctor"])
    _billed(witness, "replay/demo priced", root, [*demo, "--json", "--prices", "claude-opus-4-6@2026-01-01"])
    _billed(witness, "replay/demo layers", root, [*demo, "--json", "--policy", "pagein", "--without", "birth,cold"])
    _billed(witness, "replay/fixtures", root, ["tests/fixtures/sessions", "--jobs", "1", "--quiet", "--json"])
    mini = root.parent / "shared" / "corpus" / "mini"
    if mini.is_dir():
        _billed(witness, "replay/mini", mini.parent, ["mini", "--jobs", "1", "--quiet", "--json"])


def watch_corpus(world: World, corpus: Path, sample: int | None, jobs: int, witness: Witness) -> None:
    """The bill over a corpus: all of it, or some sessions of each archive."""
    words = ["--jobs", str(jobs), "--quiet", "--json"]
    if sample is None:
        _billed(witness, "corpus/whole", corpus.parent, [corpus.name, *words])
        return
    folder = world.scene("corpus")
    for archive in sorted(corpus.glob("*.tar.xz")):
        if ".snapshots." not in archive.name:
            _some(archive, folder, sample)
    _billed(witness, f"corpus/sample of {sample}", folder.parent, [folder.name, *words])


def _some(archive: Path, folder: Path, sample: int) -> None:
    """Unpack so many of an archive's sessions, from all over it."""
    with tarfile.open(archive, "r:xz") as opened:
        files = sorted((one for one in opened.getmembers() if one.isfile()), key=lambda one: one.name)
        for one in files[:: max(1, len(files) // sample)][:sample]:
            member = opened.extractfile(one) or io.BytesIO()
            place = folder / f"{archive.name.split('.')[0]}__{Path(one.name).name}"
            place.write_bytes(member.read())


def _billed(witness: Witness, name: str, folder: Path, words: Sequence[str]) -> None:
    os.chdir(folder)
    done = surfaces.run("replay", *words)
    out = done.pop("out")
    witness.see(f"{name} ended", json.dumps(done, sort_keys=True).encode())
    try:
        bill = json.loads(out)
    except ValueError:
        witness.see(name, out.encode())
        return
    for key, value in bill.items():
        witness.see(f"{name}/{key}", json.dumps(value, indent=1).encode())


# --- commands, settings, words ---


def watch_commands(root: Path, witness: Witness) -> None:
    """Commands with their options, settings with kinds and defaults, shapes of what is printed as JSON: no prose."""
    for one in surfaces.commands():
        witness.see(f"commands/{one['command'] or 'pagein'}", json.dumps(one, indent=1, sort_keys=True).encode())
    for row in _rows(root / "docs" / "reference" / "settings.md"):
        key, *told = row
        meaning = told.pop()
        witness.see(f"settings/{key}", json.dumps([*told, "Yours." in meaning]).encode())
    for number, (field, *told) in enumerate(_rows(root / "docs" / "reference" / "json.md")):
        witness.see(f"settings/bill {number:03} {field}", json.dumps(told[:-1]).encode())
    for number, (name, *told) in enumerate(_rows(root / "docs" / "reference" / "rules.md")):
        is_rule = _RULE.fullmatch(name) is not None
        witness.see(f"settings/rule {number:03} {name}", json.dumps([told[0], *told[2:]] if is_rule else told).encode())


def _rows(page: Path) -> Iterator[list[str]]:
    """The rows of a page's tables, without heads."""
    for line, after in pairwise([*page.read_text(encoding="utf-8").splitlines(), ""]):
        is_head = after.startswith("|--") or line.startswith("|--")
        cells = [one.strip() for one in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) > 1 and not is_head:
            yield cells


def watch_words(world: World, root: Path, witness: Witness) -> None:
    """What people read: help, reference pages, tables of the commands."""
    for one in surfaces.commands():
        name = one["command"]
        witness.see(f"words/help {name or 'pagein'}", json.dumps(surfaces.run(*name.split(), "--help")).encode())
    for page in sorted((root / "docs" / "reference").glob("*.md")):
        witness.see(f"words/reference {page.name}", page.read_bytes())
    store, work = world.scene("kept") / "store.pagein", world.scene("work")
    surfaces.make_lived_in_store(store, work, 4, 60)
    words = ["--store", str(store), "--workspace", str(work)]
    for asked in (["check"], ["objects"], ["search", "note"], ["history", "note-1"], ["window", "main"], ["gc"]):
        witness.see(f"words/{' '.join(asked)}", json.dumps(surfaces.run(*asked, *words)).encode())
    for asked in (["stats"], ["reads"]):
        witness.see(f"words/{asked[0]}", json.dumps(surfaces.run(*asked, "--session", "main", *words)).encode())
    os.chdir(root)
    demo = surfaces.run("replay", "examples/demo-session.jsonl.gz", "--jobs", "1", "--why", "--doctor")
    witness.see("words/replay", json.dumps(demo).encode())
