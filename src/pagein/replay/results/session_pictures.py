"""The data for the pictures of a session in a report, from its recording and the traces of its policies."""

from itertools import pairwise

import msgspec

from pagein.model.bill import CacheTrace, Composition, Detail, LargeResident, Why
from pagein.model.messages import ToolCall
from pagein.policy.clients.client_prompts import user_words
from pagein.replay.policies.tally import Trace
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.model_calls import Block
from pagein.replay.prompt.prompt_window import PARTS

_LARGEST = 40
_LABEL = 90


def detail(recording: BillableSession, traces: dict[str, Trace], why: Why | None = None) -> Detail:
    """Return the pictures of a session."""
    calls = recording.calls.calls
    start = calls[0].at if calls else 0.0
    return Detail(
        id=recording.head.id,
        file=recording.head.file,
        title=first_words(recording) or recording.head.id,
        times=[round(call.at - start, 1) for call in calls],
        pauses=[b.index for a, b in pairwise(calls) if b.at - a.at > recording.ttl],
        compactions=[one.call.index for one in recording.sized if one.opens_segment and one.call.index],
        traces={name: _cache(trace) for name, trace in traces.items()},
        composition={
            name: Composition(tokens={part: [round(row[part]) for row in trace.parts] for part in PARTS})
            for name, trace in traces.items()
            if name in ("append", "pagein")
        },
        epochs=traces["pagein"].epochs if "pagein" in traces else [],
        residents=_residents(recording),
        why=why,
    )


def _cache(trace: Trace) -> CacheTrace:
    return CacheTrace(
        read=[round(value) for value in trace.read],
        written=[round(value) for value in trace.written],
        fresh=[round(value) for value in trace.fresh],
        cost=[round(value, 1) for value in trace.cost],
    )


def first_words(recording: BillableSession) -> str:
    """Return the first line of the user's own words in a session; "" if there are none."""
    words = (user_words(message) for message in recording.calls.messages)
    return next((_line(said) for said in words if said.strip()), "")


def _residents(recording: BillableSession) -> list[LargeResident]:
    """Return the most expensive blocks to carry: tokens times the number of calls with the block in the prompt."""
    ends = [one.call.index for one in recording.sized if one.opens_segment and one.call.index]
    ends.append(len(recording.sized))
    carried: list[tuple[int, int, Block, float]] = []
    for one in recording.sized:
        end = next(last for last in ends if last > one.call.index)
        first, last = one.call.blocks
        for block, tokens in zip(recording.calls.blocks[first:last], one.blocks, strict=True):
            carried.append((-round(tokens * (end - one.call.index)), one.call.index, block, tokens))
    carried.sort(key=lambda one: one[:2])
    asked = {block.call_id: block for block in recording.calls.blocks if block.kind == "arguments"}
    return [
        LargeResident(
            label=_block_label(block, asked), kind=block.kind, tokens=round(tokens), born=born, carried=-weight
        )
        for weight, born, block, tokens in carried[:_LARGEST]
    ]


def _block_label(block: Block, asked: dict[str, Block]) -> str:
    call = asked.get(block.call_id)
    said = call.message.get().blocks[call.place] if call is not None else None
    return _label(said if isinstance(said, ToolCall) else None) or _line(block.text)


def _label(call: ToolCall | None) -> str:
    if call is None:
        return ""
    if call.accesses:
        return _line(f"{call.name} {call.accesses[0].path}")
    try:
        arguments = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, UnicodeError):
        return call.name
    first = (
        next((value for value in arguments.values() if isinstance(value, str)), "")
        if isinstance(arguments, dict)
        else ""
    )
    return _line(f"{call.name} {first}")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else line[: _LABEL - 1] + "…"
