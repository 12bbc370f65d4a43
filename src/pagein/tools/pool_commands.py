"""Implement `pagein pool`, `activate` and `deactivate` as functions with plain values in and out.

The result shapes are stable: each is printed as a JSON object under `--json`, described in docs/layouts.md.
"""

from typing import Any, Final, TypeAlias

from pagein.engine.session import Session
from pagein.engine.session_pools import PoolReply
from pagein.errors import BadInput
from pagein.policy.pools.pool_values import PooledObject, PoolState

Answer: TypeAlias = dict[str, Any]
_LONGEST: Final = 60


def pool(session: Session) -> Answer:
    """Return the metadata pool of a session, in its order, with the state of each object.

    Shape: `{"session", "turn", "epoch", "listed", "objects": [{"id", "type", "state", "pinned", "new", "content", "version",
    "chars", "path", "tool", "args", "status", "deleted"}], "text", "failure"}`. `listed` counts the objects of the metadata block.
    """
    state = session.pools.state
    rows = [_row(state, one) for one in state.pool()]
    lines = [_line(row) for row in rows]
    return {
        "session": session.name,
        "turn": state.turn,
        "epoch": state.epoch.number,
        "listed": state.epoch.listed,
        "objects": rows,
        "text": "\n".join(lines) or f"session {session.name!r} knows no objects yet",
        "failure": None,
    }


def activate(session: Session, target: str) -> Answer:
    """Show an object whole. Raises BadInput with the reason if that is refused."""
    return _report(session, "activate", session.pools.activate(target))


def deactivate(session: Session, target: str) -> Answer:
    """Stop showing an object whole. Raises BadInput with the reason if that is refused."""
    return _report(session, "deactivate", session.pools.deactivate(target))


def _report(session: Session, act: str, reply: PoolReply) -> Answer:
    if reply.is_error:
        remedy = "" if reply.id else f"; `pagein pool {session.name}` lists the objects that the session knows"
        raise BadInput(f"{reply.text}{remedy}")
    return {"session": session.name, "act": act, "target": reply.id, "text": reply.text, "failure": reply.failure}


def _row(state: PoolState, one: PooledObject) -> Answer:
    return {
        "id": one.id,
        "type": one.type,
        "state": "active" if state.is_active(one.id) else "inactive",
        "pinned": one.id in state.pinned,
        "new": (one.place or 0) >= state.epoch.listed,
        "content": one.content,
        "version": one.version,
        "chars": one.chars,
        "path": one.path,
        "tool": one.tool,
        "args": one.args,
        "status": one.status,
        "deleted": one.deleted,
    }


def _line(row: Answer) -> str:
    size = {"unread": "unread", "none": "deleted" if row["deleted"] else "no text"}.get(
        row["content"], f"{row['chars']:,} characters"
    )
    name = row["path"] or f"{row['tool']} {row['args']}".strip()[:_LONGEST]
    parts = (row["id"], row["state"], "pinned" if row["pinned"] else "", row["type"], size, row["status"], name)
    return "  ".join(part for part in parts if part)
