"""Implement `pagein window`, `pin`, `unpin`, `drop`, `restore`, `veto` and `epoch` as functions with plain values in and out.

The result shapes are stable: each is printed as a JSON object under `--json`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from pagein.engine.engine import Engine
from pagein.engine.session import Session
from pagein.engine.session_pools import PoolReply
from pagein.engine.window.pin_actions import InWindow, Touch
from pagein.errors import BadInput
from pagein.model.cache_notes import CacheMissNote
from pagein.model.entries import EpochEntry, NoteEntry, PagedOut, PreviewEntry, RequestSent
from pagein.model.pins import name_of

ABOUT_OBJECTS: Final[Mapping[str, tuple[Callable[[Touch, str], str | None], str]]] = {
    "pin": (Touch.pin, "stays in the window from now on"),
    "unpin": (Touch.unpin, "may leave the window again"),
    "drop": (Touch.drop, "leaves the window with the next epoch"),
    "restore": (Touch.restore, "comes back into the window with the next epoch"),
    "veto": (Touch.veto, "never leaves the window again"),
}

_MOST_NAMES: Final = 10


def existing_session(engine: Engine, name: str, known: Callable[[], Sequence[str]]) -> Session:
    """Return a stored session. A unique beginning of the name is enough.

    Raises BadInput for an unknown name.

    known: returns the names of stored sessions, newest first
    """
    session = engine.session(name)
    if session.leaf is not None:
        return session
    names = known()
    meant = [one for one in names if one.startswith(name)]
    if len(meant) > 1:
        some = ", ".join(meant[:_MOST_NAMES])
        raise BadInput(f"{len(meant)} sessions of this store begin with {name!r}: {some}; write more of the name")
    if not meant:
        raise BadInput(
            f"there is no session {name!r} in this store; those it holds: {', '.join(names[:_MOST_NAMES]) or 'none'}"
        )
    return engine.session(meant[0])


def touch(session: Session, act: str, target: str, *, now: bool = False) -> dict[str, Any]:
    """Apply a pin action to an object; with `now`, also order an epoch at the next call.

    A file may be named as well: the action holds for every result that shows the file, as far as it can be carried out. In a pooled
    window the file is an object.
    """
    wish, said = ABOUT_OBJECTS[act]
    calls = results_meant(session, target)
    refused: list[BadInput] = []
    failure: str | None = None
    try:
        for call in calls or (target,):
            try:
                failure = wish(session.hand, call) or failure
            except BadInput as problem:
                refused.append(problem)
        if len(refused) == max(len(calls), 1):
            raise refused[0]
    except BadInput:  # it is no result of the window; it may be an object of the pools
        reply = _pinned_object(session, act, target)
        if reply is None:
            raise
        text = reply.text
        if session.traffic.pooled is None and session.hand.window():  # then its window shows no pools
            text += f", in the pools; this window shows none, so nothing changes in it: to {act} a result, name its id in `pagein window`"
        return _pin_report(session, act, text, reply.failure, target=reply.id)
    if act == "pin" and _has_left(session, calls or (target,)):
        said = "stays, and comes back into the window with the next epoch"
    if now:
        failure = session.hand.epoch() or failure
        said += ", which the next call opens" if said.endswith("epoch") else "; the next call opens an epoch"
    if calls:
        done = len(calls) - len(refused)
        said += f": {done} {'result shows' if done == 1 else 'results show'} it"
        said += f". The same is not possible for {len(refused)} more: {refused[0]}" if refused else ""
    return _pin_report(session, act, f"{target} {said}", failure, target=target)


def _has_left(session: Session, targets: Sequence[str]) -> bool:
    """Whether the window shows a stub or a preview in place of one of these results."""
    return any(
        one.form != "whole" and {one.call_id, one.object_id}.intersection(targets) for one in session.hand.window()
    )


def results_meant(session: Session, target: str) -> tuple[str, ...]:
    """Return the calls in the window whose results show a file of this name; none if the target is no such file.

    Raises BadInput if several files have this name.
    """
    return session.hand.calls_showing(target) if session.traffic.pooled is None else ()


def _pinned_object(session: Session, act: str, target: str) -> PoolReply | None:
    """Pin or unpin an object of the session's pools. None if there is no such object, or for another act."""
    acts = {"pin": session.pools.pin, "unpin": session.pools.unpin}
    reply = acts[act](target) if act in acts else None
    if reply is not None and reply.is_error and reply.id:
        raise BadInput(reply.text)
    return None if reply is None or reply.is_error else reply


def departures(session: Session) -> dict[str, Any]:
    """Tell what left the window and came back with each epoch of the branch, why, and where the provider's cache was missed; the
    latest first.

    at: time of the request that the epoch opened with, or that missed the cache, seconds since 1970; None before that request.
    previews: the large outputs that entered as previews, the latest first.
    tool, what: as shown by `window`, for a result that still has its place in the window; "" for others.
    cause, who, words: why the cache was missed, by pagein's own comparison; told: by the provider, "" if it gave no reason.
    """
    rows = {one.call_id: one for one in session.hand.window()}
    found: list[dict[str, Any]] = []
    misses: list[dict[str, Any]] = []
    waiting: list[CacheMissNote] = []  # journaled after their request
    at: float | None = None
    previews: list[dict[str, Any]] = []
    here = session.leaf
    while here is not None:
        entry = session.journal.entry(here)
        here, body = entry.parent, entry.body
        if isinstance(body, PreviewEntry):
            previews += [_left_view(one, rows) for one in reversed(body.paged)]
        if isinstance(body, NoteEntry) and isinstance(body.note, CacheMissNote):
            waiting.append(body.note)
        if isinstance(body, RequestSent):
            at = body.moment
            misses += [{"at": at, **asdict(one)} for one in waiting]
            waiting = []
        if isinstance(body, EpochEntry):
            left = [_left_view(one, rows) for one in body.paged]
            back = [one.call_id for one in body.restored]
            told = {"number": body.number, "at": at, "reason": body.reason, "left": left, "back": back}
            found.append({**told, "turns": len(body.turns)})
    misses += [{"at": None, **asdict(one)} for one in waiting]
    text = "\n".join((_told(found, previews), *map(_miss_line, misses)))
    told = {"epochs": found, "previews": previews, "misses": misses}
    return {"session": session.name, **told, "text": text, "failure": None}


def _left_view(one: PagedOut, rows: Mapping[str, InWindow]) -> dict[str, Any]:
    row = rows.get(one.call_id)
    about = {"tool": "", "what": ""} if row is None else {"tool": row.tool, "what": row.description}
    return {"id": one.object_id, "tokens": one.tokens, "why": one.why, **about}


def _miss_line(one: Mapping[str, Any]) -> str:
    reasons = [one["words"]] if one["words"] else []
    reasons += [f"the provider says: {one['told']}"] if one["told"] else []
    when = "at an unknown time" if one["at"] is None else _moment(one["at"])
    return f"cache missed, {when}: {one['tokens']:,} tokens; {'; '.join(reasons)}"


def _moment(at: float | None) -> str:
    return "not sent yet" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _told(epochs: Sequence[Mapping[str, Any]], previews: Sequence[Mapping[str, Any]]) -> str:
    lines: list[str] = []
    for one in epochs:
        turns = f", {one['turns']} whole turns left" if one["turns"] else ""
        back = f", {len(one['back'])} came back" if one["back"] else ""
        lines.append(
            f"epoch {one['number']}, {_moment(one['at'])}: {one['reason']}; {len(one['left'])} left{turns}{back}"
        )
        lines += map(_left_line, one["left"])
    lines = lines or ["no epoch was opened, so nothing has left"]
    if previews:
        lines.append(f"{len(previews)} large outputs entered as previews, before any request showed them whole:")
    return "\n".join((*lines, *map(_left_line, previews)))


def _left_line(left: Mapping[str, Any]) -> str:
    parts = (f"  {left['id']}", f"{left['tokens']:,} tokens", left["tool"], left["what"])
    doubt = f"  an edit will hardly quote it: {left['why']}" if left["why"] else ""
    return "  ".join(filter(None, parts)) + doubt


def say(session: Session, text: str) -> dict[str, Any]:
    """Pin a text."""
    failure = session.hand.say(text)
    name = name_of(text)
    return _pin_report(
        session, "say", f"pinned as {name}: every window shows it from the next call on", failure, target=name
    )


def unsay(session: Session, name: str) -> dict[str, Any]:
    """Remove a pinned text."""
    failure = session.hand.unsay(name)
    return _pin_report(
        session, "unsay", f"{name} is not shown anew any more; where it was sent it stays", failure, target=name
    )


def epoch(session: Session) -> dict[str, Any]:
    """Order an epoch."""
    failure = session.hand.epoch()
    return _pin_report(session, "epoch", "the next call opens an epoch if anything may go or is to come back", failure)


def cancel_epoch(session: Session) -> dict[str, Any]:
    """Take back an ordered epoch."""
    failure = session.hand.cancel_epoch()
    return _pin_report(session, "cancel", "no epoch is ordered any more; one that was opened stays", failure)


def window(session: Session) -> dict[str, Any]:
    """Return the results in the window and the current pins."""
    rows = session.hand.window()
    wishes = session.hand.wishes
    lines = [_line(asdict(one)) for one in rows]
    lines += [f"{name}  pinned text  {text.splitlines()[0][:60] if text else ''}" for name, text in wishes.texts]
    if wishes.off:
        lines.append("switched off: nothing is decided by pagein in this session")
    return {
        "session": session.name,
        "results": [{**asdict(one), "marks": list(one.marks)} for one in rows],
        "texts": [{"name": name, "text": text, "shown": name in wishes.shown} for name, text in wishes.texts],
        "epoch_now": wishes.epoch_now,
        "off": wishes.off,
        "text": "\n".join(lines) or f"the window of session {session.name!r} holds no tool results",
        "failure": None,
    }


def _line(row: Mapping[str, Any]) -> str:
    name = row["object_id"] or row["call_id"]
    marks = " ".join(row["marks"]) or ("" if row["leaves"] or row["form"] != "whole" else "never leaves")
    parts = (name, row["form"], f"{row['tokens']:,} tokens", row["tool"], marks, row["description"])
    return "  ".join(part for part in parts if part)


def _pin_report(
    session: Session, act: str, text: str, failure: str | None, *, target: str | None = None
) -> dict[str, Any]:
    return {"session": session.name, "act": act, "target": target, "text": text, "failure": failure}
