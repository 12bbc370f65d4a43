"""Implement `pagein sessions` and `pagein chat` as functions with plain results.

The result shapes are stable: each is printed as a JSON object under `--json`, described in docs/reference/answers.md. Times are seconds since 1970.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pagein.engine.recall.named_objects import (
    HOW_TO_FILL,
    SESSIONS,
    Paths,
    VersionChoice,
    abbreviation,
    as_given,
    find_object,
    split_name,
    version_of_object,
)
from pagein.engine.recall.stored_chats import (
    TurnPlaces,
    later_calls,
    later_chats,
    main_chat,
    pages_by_turn,
    read_turns,
    turn_in,
)
from pagein.errors import BadInput, NotRecallable
from pagein.model.chats import CUT_SHORT, UNANSWERED, ChatCall, ChatTurn, Step
from pagein.model.links import Resolution
from pagein.model.messages import Message, Text, Thinking, ToolCall
from pagein.model.references import Reference
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.policy.clients.client_prompts import words_in
from pagein.ports import ObjectStore
from pagein.tools.store_commands import objects_by_time

Answer: TypeAlias = dict[str, Any]
_PAGE: Final = 8
_CHATS: Final = frozenset({"chat"})
_TURNS: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_MILLISECONDS: Final = 1000


def sessions(
    store: ObjectStore,
    *,
    since: float | None = None,
    until: float | None = None,
    agent: str | None = None,
    sub_agents: bool = False,
    limit: int = 20,
) -> Answer:
    """Return the most recently active sessions, the latest first, without reading their messages.

    since: active at this time or later
    until: begun at this time or before
    agent: the beginning of the client's name

    Shape: `{"sessions": [...], "more": whether there are more, "agents": [those of the store, if no session fits]}`.
    """
    found: list[Answer] = []
    parents = _Parents(store)
    for session, at in _sessions_by_time(store, since, 2 * limit):
        known = session.metadata
        if (
            (agent is None or str(known.get("harness") or "").startswith(agent))
            and (sub_agents or not parents.of(session))
            and (until is None or _began(session) <= until)
        ):
            if len(found) == limit:
                return {"sessions": found, "more": True, "agents": []}
            found.append(_session(store, session, at, parents.of(session)))
    return {"sessions": found, "more": False, "agents": [] if found else _agents(store)}


class _Parents:
    """Finds the session whose sub-agent a session is: by its recording, or by its name, `SESSION/AGENT` behind the gateway."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._names: set[object] | None = None

    def of(self, session: Version) -> object:
        """Return the name of the parent session, or None."""
        recorded, (before, slash, _) = session.metadata.get("parent"), _name(session).partition("/")
        if recorded or not slash:
            return recorded
        if self._names is None:  # a user may have given a name with a slash, so the name alone does not tell
            self._names = {_name(one) for one in self._store.objects(Query(types=SESSIONS))}
        return before if before in self._names else None


def _name(session: Version) -> str:
    return str(session.metadata.get("session_id") or "")


def _agents(store: ObjectStore) -> list[str]:
    """Return the clients that the store has sessions of."""
    return sorted({str(one.metadata.get("harness") or "") for one in store.objects(Query(types=SESSIONS))} - {""})


def _sessions_by_time(store: ObjectStore, since: float | None, size: int = _PAGE) -> Iterator[tuple[Version, float]]:
    """Yield each session with the time of its newest chat, the latest first."""
    places, seen = TurnPlaces(store), set[str]()
    for chat in objects_by_time(store, Query(types=_CHATS, since=since), size):
        session = places.session_of(chat)
        if session is not None and session.type == "session" and session.id not in seen:
            seen.add(session.id)
            yield session, chat.at


def _session(store: ObjectStore, session: Version, at: float, parent: object) -> Answer:
    known = session.metadata
    chats = chats_of(store, session)
    models = known.get("models")
    name = _name(session)
    return {
        "session": name,
        "short": abbreviation(store, session, name),
        "id": session.id,
        "agent": known.get("harness") or "",
        "title": known.get("title") or "",
        "began": _began(session),
        "at": at,
        "turns": max((_count(chat, "turn_count") for chat in chats), default=0),
        "steps": sum(_count(chat, "step_count") for chat in chats),
        "threads": len(chats),
        "models": list(models) if isinstance(models, tuple) else [],
        "cwd": known.get("cwd"),
        "parent": parent,
    }


def _began(session: Version) -> float:
    """Return the time of the first entry, which is in the id."""
    return int(session.id[:8] + session.id[9:13], 16) / _MILLISECONDS


def chats_of(store: ObjectStore, session: Version) -> list[Version]:
    """Return the chats of a session, in the order of their beginnings: one per thread."""
    named = session.metadata.get("chats")
    listed = named if isinstance(named, tuple) else (session.metadata.get("chat_ref"),)
    found = (store.current(one.target) for one in listed if isinstance(one, Reference))
    return [one for one in found if one is not None]


def chat(
    store: ObjectStore,
    name: str | None = None,
    *,
    turns: str | None = None,
    at: float | None = None,
    thread: int | None = None,
    paths: Paths = as_given,
) -> tuple[Answer, Iterator[Answer]]:
    """Return a chat without its turns, and an iterator that reads each turn on demand.

    A session's turns are the turns of its main conversation, then of the threads that continue it after a compaction.

    name: a session, a chat, or an object of a turn, such as a tool call; None for the session that was active last
    turns: `N` or `A-B`
    thread: number of the thread in the session, from 1; None for the main conversation

    Raises BadInput for an unknown turn or thread, NotRecallable for an unknown name.
    """
    version, turn = _named_chat(store, name, VersionChoice(at=at), thread, paths)
    first, last = _chosen_turns(version, turns, turn)
    head = _head(store, version)
    is_whole = turns is None and turn is None and at is None and thread is None
    more = _later_threads(store, version) if is_whole and _is_newest(store, version) else {}
    return head, _turns(store, {head["thread"]: version, **more}, first, last, is_newest=at is None)


def _is_newest(store: ObjectStore, version: Version) -> bool:
    newest = store.current(version.id)
    return newest is not None and newest.number == version.number


def _later_threads(store: ObjectStore, chat: Version) -> dict[int | None, Version]:
    """Return the chats in which a session's main conversation went on, by the numbers of their threads."""
    session = TurnPlaces(store).session_of(chat)
    chats = [] if session is None else chats_of(store, session)
    main = main_chat(store, chats)
    if not chats or chats[main].id != chat.id:
        return {}
    return {place + 1: chats[place] for place in later_chats(store, chats, main)}


def _turns(
    store: ObjectStore, chats: Mapping[int | None, Version], first: int, last: int | None, *, is_newest: bool
) -> Iterator[Answer]:
    """Yield the turns of the chats of some threads, the last one of each with the calls that no version has yet."""
    for thread, chat in chats.items():
        later = later_calls(store, chat) if is_newest else ()
        newest = max(pages_by_turn(chat), default=0)
        for number, turn in read_turns(store, chat, first, last):
            whole = replace(turn, steps=(*turn.steps, *later)) if number == newest else turn
            yield {"thread": thread, **_turn(number, whole)}


def _named_chat(
    store: ObjectStore, name: str | None, choice: VersionChoice, thread: int | None, paths: Paths
) -> tuple[Version, int | None]:
    """Return the chat that is named, and the turn if the name is of an object in a turn."""
    if name is None:
        meant, number = _newest_session(store), None
    else:
        name, number = split_name(store, name)
        meant = find_object(store, name, paths)
    if number is not None:
        choice = VersionChoice(number)
    if meant.type == "session":
        chats = chats_of(store, meant)
        if not chats:
            raise NotRecallable(f"nothing was said in session {meant.metadata.get('session_id')!r}")
        return version_of_object(store, chats[_thread_place(store, chats, thread)], choice), None
    if thread is not None:
        raise BadInput(f"--thread chooses among the chats of a session, and {meant.id} is a {meant.type}")
    if meant.type == "chat":
        return version_of_object(store, meant, choice), None
    reference = meant.metadata.get("chat_ref", meant.metadata.get("turn_ref"))
    found = store.resolve(Reference(reference.target, reference.pin)) if isinstance(reference, Reference) else None
    if not isinstance(found, Resolution) or not isinstance(reference, Reference):
        raise NotRecallable(f"{meant.id} is a {meant.type} of no chat; `pagein show {meant.id}` prints it")
    told = meant.metadata.get("turn")
    turn = told if isinstance(told, int) else turn_in(reference.field)
    return (found.version if turn is None else _version_with(store, found.version, turn, meant)), turn


def _version_with(store: ObjectStore, chat: Version, turn: int, meant: Version) -> Version:
    """Return the newest version of a chat in which a turn has an object.

    The object refers to the version before it. After a rewind, only versions in between have the rest of the turn.
    """
    begun = _turn_of(store, chat, turn)
    goes_on = None
    for version in reversed(store.history(chat.id)[chat.number :]):
        found = _turn_of(store, version, turn)
        if found is None:
            continue
        if any(isinstance(step, ChatCall) and step.object.target == meant.id for step in found.steps):
            return version
        if goes_on is None and begun is not None and found.said[:1] == begun.said[:1]:
            goes_on = version
    return goes_on or chat  # words, or a call that no version has yet


def _turn_of(store: ObjectStore, chat: Version, turn: int) -> ChatTurn | None:
    return next((found for _, found in read_turns(store, chat, turn, turn)), None)


def _newest_session(store: ObjectStore) -> Version:
    parents = _Parents(store)
    for session, _ in _sessions_by_time(store, None):
        if not parents.of(session):
            return session
    raise NotRecallable(f"the store has no session; {HOW_TO_FILL}")


def _thread_place(store: ObjectStore, chats: Sequence[Version], thread: int | None) -> int:
    if thread is None:
        return main_chat(store, chats)
    if not 1 <= thread <= len(chats):
        raise BadInput(f"there is no thread {thread}; the session has {_numbers(len(chats))}")
    return thread - 1


def _chosen_turns(chat: Version, turns: str | None, turn: int | None) -> tuple[int, int | None]:
    if turns is None:
        return (1, None) if turn is None else (turn, turn)
    found = _TURNS.fullmatch(turns)
    first = int(found[1]) if found else 0
    last = int(found[2]) if found and found[2] else first
    if not 1 <= first <= last:
        raise BadInput(f"not a turn: {turns[:40]!r}; expected N, or A-B with 1 <= A <= B")
    there = max(pages_by_turn(chat), default=0)
    if first > there:
        raise BadInput(f"there is no turn {first}; the chat has {_numbers(there)}")
    return first, last


def _numbers(count: int) -> str:
    return {0: "none", 1: "only 1"}.get(count, f"1 to {count}")


def _head(store: ObjectStore, chat: Version) -> Answer:
    """Shape: `{"session", "agent", "title", "id", "version", "at", "turn_count", "thread", "threads": [...]}`."""
    places = TurnPlaces(store)
    session = places.session_of(chat)
    place = places.place_in(chat, None)
    chats = [chat] if session is None else chats_of(store, session)
    return {
        "session": place.session,
        "agent": place.agent,
        "title": place.title,
        "id": chat.id,
        "version": chat.number,
        "at": chat.at,
        "turn_count": max(pages_by_turn(chat), default=0),
        "thread": next((number for number, one in enumerate(chats, start=1) if one.id == chat.id), None),
        "threads": [
            {
                "thread": number,
                "id": one.id,
                "title": one.metadata.get("title") or "",
                "turns": _count(one, "turn_count"),
                "steps": _count(one, "step_count"),
                "at": one.at,
            }
            for number, one in enumerate(chats, start=1)
        ],
    }


def _turn(number: int, turn: ChatTurn) -> Answer:
    """Shape: `{"turn", "at", "said": [part], "steps": [part]}`; of a text, `words` are those that the client did not add."""
    times = (one.at for one in (*turn.said, *turn.steps) if isinstance(one, Message))
    return {
        "turn": number,
        "at": next((at for at in times if at is not None), None),
        "said": [part for message in turn.said for part in _parts(message)],
        "steps": [part for step in turn.steps for part in _parts(step)],
    }


def _parts(step: Step) -> Iterator[Answer]:
    if isinstance(step, ChatCall):
        called = {"call_id": step.call_id, "tool": step.tool, "args": step.args, "status": step.status}
        yield {"kind": "call", **called, "object": step.object.target}
        return
    for block in step.blocks:
        match block:
            case Text():
                words = block.text if step.role == "assistant" else words_in(step.role, block)
                cut = {"cut_short": True} if step.stop == CUT_SHORT else {}
                yield {"kind": "text", "role": step.role, "text": block.text, "words": words, **cut}
            case Thinking():
                yield {"kind": "thinking", "text": block.text}
            case ToolCall() if step.stop == UNANSWERED:
                called = {"call_id": block.id, "tool": block.name, "args": block.arguments, "status": "open"}
                yield {"kind": "call", **called, "object": None}
            case ToolCall():
                pass  # shown with its outcome
            case _:
                yield {"kind": type(block).__name__.lower()}


def _count(version: Version, name: str) -> int:
    value = version.metadata.get(name)
    return value if isinstance(value, int) else 0
