"""Calls of the tool `read` in a workspace of a test."""

from typing import Any

from tests.tools.recall_sessions import Room

import pagein
from pagein.engine.engine import Settings
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.policy.guards.limits import GuardSettings, PolicyName, ProfileName
from pagein.tools.calls import Call
from pagein.tools.catalogue import answer

__all__ = ["Room", "error_of", "guarded", "meta_of", "read"]


def read(session: Session, mode: str, target: str, **arguments: object) -> ReadResult:
    """A call by mode, with the assertions that hold for each."""
    result = answer(session, "read", Call({"mode": mode, "target": target, **arguments}))
    details = result.details
    assert (details["mode"], details["target"], details["text"]) == (mode, target, result.text)
    assert details["ok"] is not result.is_error
    assert ("error" in details) == result.is_error
    assert meta_of(result)["token_estimate"] == session.tokens_of(result.text)
    assert result.failure is None
    return result


def meta_of(result: ReadResult) -> dict[str, Any]:
    meta = result.details["meta"]
    assert isinstance(meta, dict)
    return meta


def error_of(result: ReadResult) -> dict[str, Any]:
    error = result.details["error"]
    assert isinstance(error, dict)
    assert error["message"] == result.text
    return error


def guarded(
    room: Room,
    profile: ProfileName = "strict",
    relevance: PolicyName = "warn",
    folders: PolicyName = "refuse",
    name: str = "main",
) -> Session:
    """A session with these guards."""
    settings = Settings(guards=GuardSettings(profile, relevance, folders))
    engine = pagein.open(room.store, workspace=room.folder, settings=settings)
    room.engines.append(engine)
    return engine.session(name)
