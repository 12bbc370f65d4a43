"""Compare the answers of pagein's commands about a memory job with the workspace's git history and with the scripts.

Rules of this file
------------------
1. An answer may be unknown; it must never be wrong. What has to be known is listed in `_PROVEN`.
2. Nothing is asked but the command line, and nothing of pagein's code decides what is right.
3. Whether a text ends with a line feed is not compared: some agents' reads do not show it.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.agents.jobs import EditStep, JobPrompt, SayStep
from tests.agents.memory_job import FORK
from tests.agents.memory_runs import NAMES_SESSIONS, MemoryRun

Ask: TypeAlias = Callable[..., str]
"""Runs a command, and returns what it printed."""
_FAILING: Final = "no_such_line"
_DEEDS: Final = {
    "cart.py": [("1", "edit"), (FORK, "edit"), ("2", "edit"), ("3", "edit")],
    "tax.py": [("1", "write"), ("3", "edit"), ("3", "delete")],
    "plan.md": [("1", "edit")],
    "notes.md": [(FORK, "write")],
    "old.py": [("2", "delete")],
    "names.py": [("2", "delete")],
    "labels.py": [("2", "move"), ("2", "edit")],
    "sums.py": [("2", "edit")],
}
"""What the scripts do to files, by prompt; the command that moves a file and appends to it is not one of them."""
_PROVEN: Final = {
    "cart.py": {"total_a": "1", "total_b": "1", "forked": FORK, "discount": "3"},
    "plan.md": {"amaranth": "1"},
    "labels.py": {"label_2": "2"},
    "sums.py": {"summed": "2"},
    "notes.md": {"The rate": FORK},
}
"""Lines whose author has to be known, by the prompt."""
_BY_NOBODY: Final = ("by_command_6", "# moved")
"""Lines that a command wrote unseen."""


class MemoryOracle:
    """Answers about a run, compared.

    scratch: a folder to apply patches in. follows: whether the gateways followed the files on the disk.
    """

    def __init__(self, run: MemoryRun, ask: Ask, scratch: Path, *, follows: bool = False) -> None:
        self._run = run
        self._git = run.git
        self._ask = ask
        self._scratch = scratch
        self._follows = follows

    def _json(self, *arguments: str) -> Any:  # noqa: ANN401 - as it was printed
        return json.loads(self._ask(*arguments, "--json"))

    def _words(self, prompt: str) -> str:
        return self._run.prompts[prompt].text

    # --- sessions and chats ---

    def check_sessions(self) -> list[dict[str, Any]]:
        """The sessions are those that the agents tell of, with their agents, models and folders."""
        found: list[dict[str, Any]] = self._json("sessions", "-n", "100")["sessions"]
        by_name = {one["session"]: one for one in found}
        for agent in self._run.agents:
            named = self._run.conversations[agent.program] if agent.program in NAMES_SESSIONS else {}
            for conversation in named.values():
                told = by_name[conversation]
                assert told["agent"].startswith(agent.program), told
                assert told["models"] == [agent.model], told
                assert told["cwd"] == str(self._run.workspace), told
                assert told["title"].startswith(self._words(f"{agent.program}-1")), told
        assert len(by_name) == len(found)
        assert [one["at"] for one in found] == sorted((one["at"] for one in found), reverse=True)
        return found

    def check_chats(self, sessions: Sequence[dict[str, Any]]) -> None:
        """Each prompt was answered by the calls of its script, and no other, with the right outcome of each."""
        seen: dict[str, int] = {}
        for session in sessions:
            for thread in range(1, session["threads"] + 1):
                told = self._json("chat", session["session"], "--thread", str(thread))
                for turn in told["turns"]:
                    self._check_turn(session, turn, seen, is_last=turn is told["turns"][-1])
        # a fork of a conversation without an id is a branch of the same session: an older version of its chat has it
        unnamed = {f"{agent.program}-{FORK}" for agent in self._run.agents if agent.program not in NAMES_SESSIONS}
        missing = self._run.prompts.keys() - seen.keys() - unnamed
        assert not missing, missing

    def _check_turn(
        self, session: dict[str, Any], turn: dict[str, Any], seen: dict[str, int], *, is_last: bool
    ) -> None:
        said = " ".join(part.get("words", "") for part in turn["said"])
        prompt = next((one for one in self._run.prompts.values() if said.endswith(one.words)), None)
        calls = [part for part in turn["steps"] if part["kind"] == "call"]
        if prompt is None or not calls:
            return  # a title, a summary, or words that a compaction repeats
        seen[prompt.name] = seen.get(prompt.name, 0) + 1
        expected = [(one in _failures(prompt)) for one in _calls(prompt)]
        failed = [one["status"] == "fail" for one in _in_order(calls)]
        # the chat of a conversation that does not go on may lack its end: the last answer comes with the next request
        assert failed == expected[: len(failed) if is_last else None], (session["session"], turn)
        texts = [part["text"] for part in turn["steps"] if part["kind"] == "text" and part["role"] == "assistant"]
        is_compacted = prompt.name.endswith("-2")  # some agents put the answer before it into the summary alone
        assert is_last or is_compacted or _last_words(prompt) in texts, (session["session"], texts)
        for call in calls:
            assert self._git.commit_after(call["call_id"]).name == prompt.name

    # --- files ---

    def check_file(self, path: str) -> list[dict[str, Any]]:
        """Each version of a file is what git has of it after the call that it names, and each change is there once."""
        program, _, name = path.partition("/")
        versions = list(reversed(self._json("history", path)["versions"]))
        made: list[tuple[str, str]] = []
        shown = []
        for version in versions:
            told = self._json("show", f"{version['id']}@{version['version']}")
            if told["metadata"].get("proof") == "disk" or "call" not in told["metadata"]:
                self._check_sighting(path, version, told)
                continue
            call = told["metadata"]["call"]["$ref"]["id"]
            commit = self._git.commit_after(call)
            prompt = commit.name
            assert version["said"].startswith(self._words(prompt)), (path, version, prompt)
            assert version["session"] in (self._run.sessions_of(prompt) or {version["session"]}), (path, version)
            there = self._path_in(told["metadata"]) or path  # it may have moved since
            self._check_text(path, version, told, self._git.text(commit.digest, there))
            made += [] if version["op"] == "read" else [(prompt.removeprefix(f"{program}-"), version["op"])]
            shown.append({**version, "call": call, "commit": commit.digest, "content": told["content"]})
        assert made == [one for one in _DEEDS.get(name, []) if one in made], (path, made)
        assert {one for one in _DEEDS.get(name, []) if one[1] in ("edit", "write")} <= set(made), (path, made)
        return shown

    def _path_in(self, metadata: dict[str, Any]) -> str:
        told = metadata.get("path") or metadata.get("last_path")
        return str(Path(told).relative_to(self._run.workspace)) if told else ""

    def _check_sighting(self, path: str, version: dict[str, Any], told: dict[str, Any]) -> None:
        """What was found on the disk stood there, in one of the states that git has, or stands there now.

        Or the file was empty: writers empty a file before they write it.
        """
        assert self._follows, (path, version)
        assert (version["session"], version["turn"], version["said"]) == (None, None, None), (path, version)
        there = self._path_in(told["metadata"]) or path
        texts = {self._git.text(commit.digest, there) for commit in self._git.commits} | {self._on_disk(there), ""}
        assert told["content"] in texts, (path, version, told["content"])
        assert (version["op"] == "delete") == (told["content"] is None), (path, version)

    def _on_disk(self, path: str) -> str | None:
        file = self._run.workspace / path
        return file.read_text(encoding="utf-8") if file.exists() else None

    def is_caught_up(self) -> bool:
        """Whether the newest version of each touched file is the file as it is now, or tells that it is gone."""
        return all(self._is_current(path) for path in self._touched())

    def _is_current(self, path: str) -> bool:
        told = self._json("show", path)
        truth = self._on_disk(path)
        if told["path"] != str(self._run.workspace / path):
            return truth is None  # deleted, or at another path now
        return told["known"] == "whole" and truth is not None and _same(told["content"], truth)

    def _touched(self) -> list[str]:
        """The files that agents touched; a command made the other one, and nobody read it."""
        return [path for path in sorted(self._git.paths()) if not path.endswith("duty.py")]

    def check_move(self, old: str, new: str) -> None:
        """A file that moved is the same object at its new path."""
        assert self._json("history", old)["id"] == self._json("history", new)["id"], (old, new)

    def check_links(self, program: str) -> None:
        """The link in an agent's note means the plan beside it, and not that of another agent."""
        note, plan = f"{program}/notes.md", f"{program}/plan.md"
        (link,) = (one for one in self._json("show", note)["references"] if "/links/" in one["path"])
        assert link["resolved"], link
        assert link["target"]["title"] == str(self._run.workspace / plan), link
        notes = [one["path"] for one in self._json("backlinks", plan)["backlinks"] if one["type"] == "note"]
        assert notes == [str(self._run.workspace / note)], notes

    def _check_text(self, path: str, version: dict[str, Any], told: dict[str, Any], truth: str | None) -> None:
        where = (path, version["version"], version["op"], version["known"])
        match version["known"]:
            case "whole":
                assert truth is not None, where
                assert _same(told["content"], truth), (*where, told["content"], truth)
            case "part":
                assert truth is not None, where
                (first, last) = version["spans"][0]
                assert told["content"].split("\n") == truth.split("\n")[first - 1 : last], where
            case "likely":
                assert version["op"] in ("edit", "move"), where
            case _:
                assert told["content"] is None, where
        if version["op"] == "delete":
            assert truth is None, where
        if version["op"] in ("move", "write", "edit"):
            assert truth is not None, where

    def check_diffs(self, path: str, versions: Sequence[dict[str, Any]]) -> int:
        """The difference between two whole versions, applied by git to the first one's text, gives the second's."""
        whole = [one for one in versions if one["known"] == "whole"]
        count = 0
        for old, new in itertools.pairwise(whole):
            told = self._json("diff", f"{path}@{old['version']}..{new['version']}")
            before, after = old["content"], self._git.text(new["commit"], path) or ""
            got = self._git.applied(before, told["diff"], self._scratch) if told["diff"] else before
            assert _same(got, after), (path, told["diff"])
            count += 1
        return count

    def check_backlinks(self, path: str, versions: Sequence[dict[str, Any]]) -> None:
        """The calls that touched a file are those of the scripts that name it, and each version is made by one of them."""
        links = [one for one in self._json("backlinks", path, "-n", "100")["backlinks"] if one["type"] == "toolcall"]
        calls = [one["id"] for one in links]
        assert len(calls) == len(set(calls)), path
        assert {one["call"] for one in versions} <= set(calls), path
        for link in links:
            prompt = self._git.commit_after(link["id"]).name
            assert link["said"].startswith(self._words(prompt)), (path, link)
            names = [path.rpartition("/")[2], *(["names.py"] if self._follows and path.endswith("labels.py") else [])]
            assert any(name in link["title"] for name in [*names, "Patch"]), (path, link)

    def check_blame(self, path: str) -> int:
        """Each line that is given to an agent was written in that turn, as git has it. Returns how many there are."""
        program, _, name = path.partition("/")
        told = self._json("blame", path)
        authors = self._git.authors(path)
        assert len(told["lines"]) == len(authors), path
        known = 0
        for line, commit in zip(told["lines"], authors, strict=True):
            proven = next((part for word, part in _PROVEN.get(name, {}).items() if word in line["text"]), None)
            assert proven is None or line["answer"] == "agent", (path, line)
            if line["answer"] != "agent":
                assert line["answer"] == "unknown", (path, line)
                continue
            source = told["sources"][line["source"]]
            assert not any(word in line["text"] for word in _BY_NOBODY), (path, line)
            assert commit.name != "start", (path, line)
            assert source["request"].startswith(self._words(commit.name)), (path, line, source, commit)
            assert source["session"] in (self._run.sessions_of(commit.name) or {source["session"]}), (path, line)
            assert proven is None or commit.name == f"{program}-{proven}", (path, line)
            known += 1
        return known

    # --- search ---

    def check_search(self) -> None:
        """Texts are found where they were said, asked, shown and written."""
        for agent in self._run.agents:
            program = agent.program
            said = self._hits(f"bergamot of {program}", "chat")
            # an agent may quote its model in the request for a summary
            assert "assistant" in {hit["speaker"] for hit in said} <= {"assistant", "user"}, said
            sessions = self._run.sessions_of(f"{program}-1")
            assert sessions <= {hit["session"] for hit in said}
            asked = self._hits(f"Try it with another rate, {program}", "user")
            assert {hit["session"] for hit in asked} == (
                self._run.sessions_of(f"{program}-{FORK}") or {hit["session"] for hit in asked}
            )
            assert asked
            assert any(hit["field"].startswith("content") for hit in self._hits("chervil", "toolcall"))
        for word in ("def forked", "amaranth", "def summed", "by_command_6"):
            there = self._git.paths_with(word)
            found = {
                str(Path(hit["path"]).relative_to(self._run.workspace)) for hit in self._hits(word, "file", "note")
            }
            assert found <= there, (word, found - there)
            assert {one for one in there if not one.endswith("duty.py")} <= found, (word, there - found)

    def _hits(self, text: str, *types: str) -> list[dict[str, Any]]:
        filters = [one for type_ in types for one in ("--type", type_)]
        found: list[dict[str, Any]] = self._json("search", text, "-n", "100", "--versions", "all", *filters)["hits"]
        return found

    # --- everything ---

    def check(self) -> dict[str, int]:
        """Compare everything. Returns how much was compared."""
        self.check_chats(self.check_sessions())
        counts = {"versions": 0, "whole": 0, "diffs": 0, "lines": 0}
        for agent in self._run.agents:
            self.check_links(agent.program)
        for path in self._touched():
            if self._follows and path.endswith("names.py"):
                self.check_move(path, path.replace("names.py", "labels.py"))
                continue
            versions = self.check_file(path)
            counts["versions"] += len(versions)
            counts["whole"] += sum(one["known"] == "whole" for one in versions)
            counts["diffs"] += self.check_diffs(path, versions)
            self.check_backlinks(path, versions)
            if (self._run.workspace / path).exists():
                counts["lines"] += self.check_blame(path)
        self.check_search()
        return counts


def _same(text: str, truth: str) -> bool:
    return text.removesuffix("\n") == truth.removesuffix("\n")


def _calls(prompt: JobPrompt) -> list[object]:
    return [step for steps in prompt.calls for step in steps if type(step).__name__ not in ("SayStep", "FillStep")]


def _failures(prompt: JobPrompt) -> list[object]:
    return [one for one in _calls(prompt) if isinstance(one, EditStep) and _FAILING in one.old]


def _in_order(calls: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Calls of the same answer may end in any order: their ids say in which they were made."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for call in calls:
        groups.setdefault(call["call_id"].rpartition("_")[0], []).append(call)
    for group in groups.values():
        yield from sorted(group, key=lambda one: one["call_id"])


def _last_words(prompt: JobPrompt) -> str:
    return next(step.text for step in prompt.calls[-1] if isinstance(step, SayStep))
