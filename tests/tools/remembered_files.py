"""A store with the versions of a file, as the index of journals writes them, and a real repository around the file."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pagein.model.references import Reference
from pagein.model.versions import Draft, Provenance, Version, Writer
from pagein.model.writes import Write, Written
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.tools.blame_commands import blame
from pagein.workspace.git_blame import git_blame

_ENV = {
    "GIT_AUTHOR_NAME": "p", "GIT_AUTHOR_EMAIL": "p@example.invalid", "GIT_COMMITTER_NAME": "p",
    "GIT_COMMITTER_EMAIL": "p@example.invalid", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
}  # fmt: skip
_ID = "01890a5d-ac96-774b-bcce-{:012x}"


@dataclass
class RememberedFile:
    """A file in a folder, and what sessions did to it. Each deed happens on the disk and in the store.

    at: the time of the last deed. number: of the file's object.
    """

    path: Path
    store: SqliteStore
    at: float = 1_700_000_000.0
    words: dict[tuple[str, int], Version] = field(default_factory=dict)
    calls: int = 0
    number: int = 1

    def at_path(self, path: Path) -> "RememberedFile":
        """The file at another path: in another worktree, or under another name."""
        return RememberedFile(path, self.store, self.at, self.words, self.calls, self.number + 1)

    # --- deeds ---

    def writes(self, session: str, turn: int, text: str) -> Version:
        self.path.write_text(text)
        return self.version(session, turn, "write", text)

    def edits(self, session: str, turn: int, old: str, new: str, *, known: str = "whole") -> Version:
        """Replace a text. known: `whole` if the session knows the file, `name` if not."""
        before = self.path.read_text()
        assert before.count(old) == 1
        text = before.replace(old, new)
        self.path.write_text(text)
        args = {"file_path": str(self.path), "old_string": old, "new_string": new}
        return self.version(session, turn, "edit", text if known == "whole" else None, args=args)

    def reads(self, session: str, turn: int, lines: tuple[int, int] | None = None) -> Version:
        text = self.path.read_text()
        if lines is None:
            return self.version(session, turn, "read", text)
        part = "\n".join(text.split("\n")[lines[0] - 1 : lines[1]])
        return self.version(session, turn, "read", part, spans=[list(lines)])

    def deletes(self, session: str, turn: int) -> Version:
        self.path.unlink()
        metadata = {"path": None, "last_path": str(self.path), "op": "delete", "known": "name", "turn": turn}
        draft = Draft(id=_ID.format(self.number), type="file", metadata=metadata, deleted=True)
        return self._write(draft, session, "delete")

    def asks(self, session: str, turn: int, words: str) -> None:
        draft = Draft(id=self._id(), type="user", content=words, metadata={"turn": turn, "session_id": session})
        self.words[session, turn] = self._write(draft, session, "words")

    def works(self, session: str, harness: str, *models: str) -> None:
        metadata = {"session_id": session, "harness": harness, "models": models}
        self._write(Draft(id=self._id(), type="session", metadata=metadata), session, "session")

    def saves(self, text: str) -> Version:
        """A person saves the file in an editor that says so."""
        self.path.write_text(text)
        return self.version(None, 0, None, text, generator="human", kind="client")

    def changes(self, text: str) -> Version:
        """The watcher finds the file changed."""
        self.path.write_text(text)
        return self.version(None, 0, None, text, generator="human", kind="watcher")

    def version(
        self,
        session: str | None,
        turn: int,
        deed: str | None,
        text: str | None,
        *,
        args: dict[str, str] | None = None,
        spans: list[list[int]] | None = None,
        generator: str = "agent",
        kind: str = "index",
    ) -> Version:
        """Write a version of the file."""
        metadata: dict[str, Any] = {"path": str(self.path), "file_type": "text"}
        if deed is not None:
            metadata |= {"op": deed, "turn": turn, "known": "name" if text is None else "part" if spans else "whole"}
        if session is not None and (session, turn) in self.words:
            metadata["user_ref"] = self.words[session, turn].static(relation="asked")
        if args is not None:
            self.calls += 1
            call = Draft(
                id=f"toolu_{self.number}_{self.calls}", type="toolcall", content="ok", additional={"args": args}
            )
            self._write(call, session, "result")
            metadata["call"] = Reference(call.id, relation="call")
        additional = {} if spans is None else {"spans": spans}
        origin = Provenance(str(self.path), generator)
        draft = Draft(
            id=_ID.format(self.number),
            type="file",
            content=text,
            metadata=metadata,
            additional=additional,
            provenance=origin,
        )
        return self._write(draft, session, deed or "change", kind)

    def _id(self) -> str:
        return _ID.format(self.store.log()[-1].sequence + 10 if self.store.log() else 10)

    def _write(self, draft: Draft, session: str | None, reason: str, kind: str = "index") -> Version:
        self.at += 60
        request = f"{reason}:{self.number}:{self.at}"
        outcome = self.store.write(Write(request, draft, self.at, writer=Writer(kind, reason, session)))
        assert isinstance(outcome, Written)
        return outcome.version

    # --- git ---

    def git(self, *arguments: str, at: float | None = None) -> str:
        """Run git in the folder of the file."""
        when = f"{at or self.at:.0f} +0000"
        env = {**os.environ, **_ENV, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "GIT_EDITOR": "true"}
        done = subprocess.run(  # noqa: S603 - git
            ["git", *arguments],  # noqa: S607
            cwd=self.path.parent, env=env, capture_output=True, check=False, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commits(self, message: str = "work", *options: str, at: float | None = None) -> None:
        self.git("add", "-A", at=at)
        self.git("commit", "-q", "--allow-empty", "-m", message, *options, at=at)

    # --- answers ---

    def blame(self, lines: tuple[int, int] | None = None) -> dict[str, Any]:
        content = self.path.read_bytes()
        return blame(self.store, str(self.path), content.decode(), git_blame(str(self.path), content), lines=lines)

    def writers(self) -> list[str]:
        """Who wrote each line: `session/turn` for an agent, else the answer."""
        found = self.blame()
        sources = found["sources"]
        return [
            f"{sources[line['source']]['session']}/{sources[line['source']]['turn']}"
            if line["answer"] == "agent"
            else line["answer"]
            for line in found["lines"]
        ]


def remembered_file(folder: Path, name: str = "a.txt") -> RememberedFile:
    """Return a new file in a repository without commits, and a new store beside the folder."""
    place = folder / "work"
    place.mkdir()
    file = RememberedFile(place / name, SqliteStore(folder / "store.pagein"))
    file.git("init", "-q", "-b", "main")
    return file
