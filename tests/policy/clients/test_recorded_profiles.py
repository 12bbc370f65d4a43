"""Profiles against recorded sessions: the text alone tells what the host itself recorded of its reads."""

from collections import Counter
from pathlib import Path

import pytest

from pagein.model.messages import Message, Recorded, ToolCall, ToolResult
from pagein.policy.audit.witness import witness
from pagein.policy.clients.client_reads import START
from pagein.policy.clients.client_rereads import RereadRules, answer, with_message
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import PROFILES
from pagein.replay.readers import Source, find, read_source

pytestmark = [pytest.mark.corpus]

NATIVE = {"claude-code": 4, "codex": 1, "opencode": 2, "pi": 1}


def _recorded(client: str) -> list[list[Recorded]]:
    folder = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "native"
    if not folder.is_dir():
        pytest.skip("the recorded sessions are not beside the checkout")
    sources = find(sorted(folder.glob(f"{client}__*")))
    return [
        list(session.entries) for source in sources if isinstance(source, Source) for session in read_source(source)
    ]


def _pairs(entries: list[Recorded]) -> list[tuple[ToolCall, ToolResult]]:
    messages = [one for one in entries if isinstance(one, Message)]
    calls = {block.id: block for one in messages for block in one.blocks if isinstance(block, ToolCall)}
    results = [block for one in messages for block in one.blocks if isinstance(block, ToolResult)]
    return [(calls[one.call_id], one) for one in results if one.call_id in calls]


@pytest.mark.parametrize("client", NATIVE)
def test_lines_and_failures_are_told_as_the_host_recorded_them(client: str) -> None:
    profile, told = PROFILES[client], Counter[str]()
    sessions = _recorded(client)
    assert len(sessions) >= NATIVE[client]
    for call, result in (pair for entries in sessions for pair in _pairs(entries)):
        failed = profile.is_failure(call, ToolResult(result.call_id, result.text))
        told["failed"] += failed
        # a failure that only the wire tells of may be missed; success is never called a failure
        assert not failed or result.is_error or client == "codex", result.text[:200]
        shown = profile.lines_shown(call, result)
        if shown is not None and result.shown is not None:
            told["lines"] += 1
            assert (shown.first, len(shown.lines)) == (result.shown.start, result.shown.count)
            assert shown.total in (None, result.shown.total)
        told["shown"] += shown is not None
    assert told["shown"] > 0
    assert told["lines"] > 0 or client in ("codex", "pi")


@pytest.mark.parametrize("client", NATIVE)
def test_every_answer_to_a_recorded_read_is_borne_out(client: str) -> None:
    answered = sum(_replayed(entries, PROFILES[client]) for entries in _recorded(client))
    assert answered > 0 or client in ("codex", "opencode")


def _replayed(entries: list[Recorded], profile: Profile) -> int:
    state, reader, answered = START, RereadRules(profile), 0
    sent: list[Message] = []
    for message in (one for one in entries if isinstance(one, Message)):
        for block in message.blocks:
            one = Message(message.role, (block,))
            stands: dict[str, str] = {}
            if isinstance(block, ToolResult):
                found = answer(state, reader, block)
                answered += found is not None
                stands[block.call_id] = block.text if found is None else found.text
                sent.append(Message(message.role, (ToolResult(block.call_id, stands[block.call_id]),)))
            else:
                sent.append(one)
            state = with_message(state, reader, one, stands)
    assert witness(sent, state.files.claims(), state.files.versions().get) == ()
    return answered
