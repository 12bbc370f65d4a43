"""A session with stored objects, and a delegation of scripted children over it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pagein
from pagein.delegation.call_tree import CallTree
from pagein.delegation.delegation import Delegation
from pagein.delegation.model_calls import Retries
from pagein.engine.engine import Engine
from pagein.engine.session import Session
from pagein.model.delegation_notes import DelegationKind
from pagein.policy.delegation.limits import DelegationLimits, DelegationSettings
from pagein.policy.delegation.reports import Question, Report
from pagein.testing.scripted_children import Script, ScriptedChild
from pagein.tools.calls import Call
from pagein.tools.child_tools import ChildToolset
from pagein.tools.ingest import INGEST

T = TypeVar("T")
QUICK = Retries(4, 0.001, 0.002)


@dataclass
class Asked:
    """A session on a real store, with some ingested files, and the children that it may ask."""

    folder: Path
    child: ScriptedChild
    limits: DelegationLimits = field(default_factory=DelegationLimits)
    settings: DelegationSettings = field(default_factory=DelegationSettings)
    tree: CallTree = field(default_factory=CallTree)
    retries: Retries = QUICK
    engines: list[Engine] = field(default_factory=list)

    def session(self, name: str = "main") -> Session:
        """The session as a fresh process would find it."""
        engine = pagein.open(self.folder / "store.db", workspace=self.folder, children=lambda: self.child)
        self.engines.append(engine)
        return engine.session(name, workspace=self.folder)

    def ingested(self, session: Session, **texts: str) -> list[str]:
        """The ids of these texts, in this order, after each was ingested as a file."""
        for name, text in texts.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        result = INGEST.answer(session, Call({"paths": list(texts)}))
        assert isinstance(result.details, dict), result.text
        by_path = {str(one["path"]): str(one["id"]) for one in result.details["files"]}
        return [by_path[name] for name in texts]

    def delegation(self, session: Session, model: str = "") -> Delegation:
        settings = replace(self.settings, limits=self.limits)
        return Delegation(
            session.recalls.children,
            lambda: self.child,
            ChildToolset(session),
            settings,
            session_model=model,
            tree=self.tree,
            retries=self.retries,
        )

    def ask(self, session: Session, kind: DelegationKind, targets: list[str], **more: Any) -> Report:  # noqa: ANN401 -- the fields of a question
        """The report of one operation. That nothing is left running is checked each time."""
        question = Question(kind, more.pop("instructions", "What is it?"), tuple(targets), **more)
        return run(lambda: self.delegation(session).ask(question))

    def trajectory(self) -> list[dict[str, Any]]:
        lines = (self.folder / "store.db.trajectory.jsonl").read_text(encoding="utf-8").splitlines()
        return [one for one in map(json.loads, lines) if one["kind"] == "call"]

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def run(make: Callable[[], Awaitable[T]]) -> T:
    """The result of a coroutine, after a check that no task of it is left."""

    async def alone() -> T:
        result = await make()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(alone())


def asked(folder: Path, script: Script, **more: Any) -> Asked:  # noqa: ANN401 -- the limits
    return Asked(folder, ScriptedChild(script), DelegationLimits(**more))
