"""Everything that the comparison imports from pagein: the only place to change after a renaming.

Each function gives plain values. Where a name of pagein changes, its new name goes in here; what is recorded keeps its old name.
"""

import contextlib
import io
import json
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest import mock

import typer
from scripts.behaviour.conversations import Format, Json, Part, Said, Talk
from typer.testing import CliRunner

import pagein
from pagein.cli.cli import app
from pagein.engine.engine import Engine
from pagein.engine.prepared_request import Observation, PreparedRequest
from pagein.engine.session import Session
from pagein.errors import PageinError
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.curation.guarded_curator import CuratedRequest, UsageAccount
from pagein.model.messages import HostEvent, Message, Text, Thinking, ToolCall, ToolResult
from pagein.model.pins import name_of
from pagein.providers.tokens.counters import ratio_counter
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.replay.readers import Source, find, read_source
from pagein.settings.sources import load_config
from pagein.simulator import ProviderSettings, SimulatedProvider
from pagein.testing.lived_in_store import make_lived_in_store
from pagein.testing.recorded_time import GatewayTerms, SetClock, gateway_at
from pagein.tools.brief import OFFERS, answer_call, definitions
from pagein.tools.calls import Call
from pagein.tools.catalogue import TOOLS, answer, guidance

__all__ = ["Engine", "PageinError", "PreparedRequest", "Session", "SetClock", "definitions", "make_lived_in_store"]

Plain: TypeAlias = dict[str, Any]
_PATIENCE: Final = 60.0
_KINDS: Final[Mapping[type, str]] = {Text: "text", Thinking: "thinking", ToolCall: "call", ToolResult: "result"}


def place_of_pagein() -> Path:
    """The folder that pagein was imported from."""
    return Path(pagein.__file__).resolve().parent


# --- recorded sessions ---


def talks(path: Path, name: str) -> list[Talk]:
    """The recorded sessions in a file or folder, in the order in which they are found."""
    found: list[Talk] = []
    for source in find([path]):
        if not isinstance(source, Source):
            found.append(Talk(f"{name} {len(found)}", (), plain=f"skipped: {source.reason}".encode()))
            continue
        try:
            sessions = [(one.head, list(one.entries)) for one in read_source(source)]
        except PageinError as problem:
            found.append(Talk(f"{name} {len(found)}", (), plain=f"refused: {problem}".encode()))
            continue
        for head, entries in sessions:
            found.append(_talk(f"{name} {len(found)}", [head.id, head.agent, head.models, head.parent], entries))
    return found


def _talk(name: str, head: object, entries: Sequence[object]) -> Talk:
    said: list[Said] = []
    begins: list[int] = []
    rows: list[object] = [head]
    for one in entries:
        match one:
            case Message():
                said.append(_said(one))
                rows.append(_row(one))
            case HostEvent():
                if one.kind == "compaction":
                    begins.append(len(said))
                rows.append([one.kind, one.at, one.data])
            case _:
                rows.append(values(one))
    plain = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return Talk(name, tuple(said), tuple(begins), plain)


def _row(one: Message) -> list[Any]:
    blocks = [[_KINDS.get(type(block), "other"), *values(block)] for block in one.blocks]
    return [one.role, one.at, one.model, one.stop, one.id, values(one.usage), blocks]


def order(session: Session, act: str, *target: str) -> object:
    """Give an order about the window. Returns the failure or None; for a pinned text without a failure, its name."""
    failure = getattr(session.hand, act)(*target)
    return name_of(*target) if act == "say" and failure is None else failure


def values(one: object) -> Any:  # noqa: ANN401 -- whatever JSON can hold
    """What a value holds, without the names of its class and fields, which may change."""
    if is_dataclass(one) and not isinstance(one, type):
        return [values(getattr(one, field.name)) for field in fields(one)]
    if isinstance(one, Mapping):
        return {str(name): values(value) for name, value in one.items()}
    if isinstance(one, list | tuple):
        return [values(value) for value in one]
    return one if isinstance(one, str | int | float | None) else str(one)


def _said(one: Message) -> Said:
    parts: list[Part] = []
    for block in one.blocks:
        match block:
            case Text(text=text):
                parts.append(Part("text", text))
            case Thinking(text=text):
                parts.append(Part("thinking", text))
            case ToolCall(id=name, name=tool, arguments=arguments):
                parts.append(Part("call", arguments, name, tool))
            case ToolResult(call_id=name, text=text, is_error=is_error):
                parts.append(Part("result", text, name, is_error=is_error))
            case _:
                pass
    used = one.usage
    usage = None if used is None else (used.fresh, used.read, used.written, used.output)
    return Said(one.role, tuple(parts), one.at, usage)


# --- the engine ---


def opened(store: Path | str, workspace: Path | None = None) -> Engine:
    """An engine on a store, by the settings of the environment."""
    return pagein.open(store, workspace=workspace or "/pagein-workspace")


def prepared(
    engine: Engine,
    client: bytes,
    wire: Format,
    *,
    at: float,
    hint: str | None,
    offers: bool = True,
    lasting: float = 0.0,
) -> PreparedRequest:
    """A request as it goes out. offers: whether pagein offers its recall tools in it."""
    return engine.prepare(client, wire, at=at, hint=hint, offers=OFFERS if offers else None, lasting=lasting)


def facts(one: PreparedRequest) -> Plain:
    """What is told of a request beside its bytes."""
    opened = one.opened
    return {
        "session": one.session,
        "entry": one.entry,
        "placed": one.placed,
        "messages": one.messages,
        "shared": one.shared,
        "epoch": one.epoch,
        "replaced": one.replaced,
        "changed": list(one.changed_by_client),
        "crowded": one.crowded,
        "repaired": one.repaired,
        "failure": one.failure,
        "offered": list(one.offered),
        "opened": opened and [opened.reason, opened.frontier, [[of.call_id, of.object_id] for of in opened.paged]],
        "turns": opened and len(opened.turns),
        "previewed": [[of.call_id, of.object_id] for of in one.previewed],
    }


def seen(engine: Engine, one: PreparedRequest, reply: Mapping[str, Any]) -> Plain:
    """What the answer to a request tells."""
    return _observed(engine.observe(one, reply))


def _observed(one: Observation) -> Plain:
    keep = one.keep
    return {
        "expected": one.expected,
        "predicted": one.predicted,
        "shortfall": one.shortfall,
        "cause": one.diagnosis.cause,
        "failure": one.failure,
        "keep": keep and [keep.at, keep.price, keep.kept, keep.spent],
    }


# --- tools ---


def tool_offers() -> list[Plain]:
    """All tools that hosts may offer: name, schema, description."""
    return [{"name": one.name, "schema": dict(one.schema), "description": one.description} for one in TOOLS]


def tool_guidance() -> str:
    """What a system prompt says of all tools."""
    return guidance(TOOLS)


def tool_answer(session: Session, name: str, arguments: Json, call: str) -> Plain:
    """How a session answers a call of a tool."""
    found = answer(session, name, Call(arguments, id=call))
    return {"text": found.text, "is_error": found.is_error, "details": found.details}


def brief_answer(session: Session, name: str, arguments: Json, call: str) -> Plain:
    """How a session answers a call of one of the tools that stand beside a client's own."""
    found = answer_call(session, name, arguments, call)
    return {"text": found.text, "is_error": found.is_error}


def shown(session: Session, call: str, path: str, text: str) -> Plain:
    """The model called for a read, and its answer enters the window: what of the request is new."""
    session.append(Message("assistant", (ToolCall(call, "read", json.dumps({"path": path})),)))
    session.append(Message("tool", (ToolResult(call, text, "read"),)))
    made = session.advance()
    return {"keep": made.keep, "tail": list(map(_row, made.tail)), "epoch": made.epoch, "failure": made.failure}


# --- the gateway and the simulated provider ---


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway at an address. bodies: what arrived at its provider. rested: waits until it has taken in so many answers of the provider."""

    address: str
    bodies: Callable[[], list[bytes]]
    rested: Callable[[int], None]


@contextlib.contextmanager
def gateway(turns: list[Any], folder: Path, clock: SetClock) -> Iterator[Gateway]:
    """A gateway in front of a simulated provider that answers by this script."""
    settings = ProviderSettings(takes_foreign_thinking=True, now=clock.now, counter=ratio_counter)
    told = threading.Semaphore(0)
    observe = EngineCurator.observe

    def observed(curator: EngineCurator, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
        try:
            return observe(curator, curated, reply)
        finally:
            told.release()

    def rested(count: int) -> None:
        # a client has its answer before the gateway has taken that in, and what it decides next hangs on it
        for _ in range(count):
            if not told.acquire(timeout=_PATIENCE):
                raise TimeoutError("an answer was not taken in")

    with SimulatedProvider(turns, settings) as provider, mock.patch.object(EngineCurator, "observe", observed):

        def bodies() -> list[bytes]:
            return [json.dumps([one.path, one.status, one.body]).encode() for one in provider.requests]

        terms = GatewayTerms(clock, load_config().engine, ratio_counter("claude"))
        with gateway_at(provider.url, folder, terms) as address:
            yield Gateway(address, bodies, rested)


# --- the command line ---


def commands() -> list[Plain]:
    """All commands with their arguments and options; no words of the help."""
    root = typer.main.get_command(app)
    named = getattr(root, "commands", {})
    return [_command(name, one) for name, one in [("", root), *sorted(named.items())]]


def _command(name: str, command: Any) -> Plain:  # noqa: ANN401 -- typer's own, which has no public type
    return {"command": name, "parameters": [_parameter(one) for one in command.params]}


def _parameter(one: Any) -> Plain:  # noqa: ANN401 -- as above
    told = getattr(one, "type_descriptor", None)
    return {
        # what an argument is called in the code, nobody types
        "names": sorted([*one.opts, *one.secondary_opts]) if one.opts[0].startswith("-") else [one.metavar],
        "type": str(getattr(told, "annotation", getattr(one, "type", ""))),
        "bounds": [getattr(one, "min", None), getattr(one, "max", None)],
        "required": one.required,
        "many": one.multiple or one.nargs != 1,
        "default": None if callable(one.default) else str(one.default),
        "variable": one.envvar,
        "hidden": getattr(one, "hidden", False),
    }


def run(*words: str) -> Plain:
    """A command, as it is typed behind `pagein`: exit status and what it printed."""
    out, problem = CliRunner().invoke(app, list(words), prog_name="pagein"), ""
    if isinstance(out.exception, PageinError):
        problem = str(out.exception)
    elif out.exception is not None and not isinstance(out.exception, SystemExit):
        told = io.StringIO()
        traceback.print_exception(out.exception, file=told)
        problem = told.getvalue()
    return {"status": out.exit_code, "out": out.stdout, "err": out.stderr, "problem": problem}
