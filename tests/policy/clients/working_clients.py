"""Clients at work on files of their own: what each one's tools say, as measured, without the clients."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.policy.audit.witness import Objection, witness
from pagein.policy.clients.client_reads import START, ClientReads, without
from pagein.policy.clients.client_rereads import RereadRules, answer, lost_base, with_message
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import PROFILES

STUB = "[pagein: pg-00000000-00000000 | Read | 1 tokens | gone]"
CLIENTS = ("claude-code", "codex", "opencode", "pi", "gemini-cli")
REPEATED = "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead."

GEMINI_HEAD = (
    "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines {}-{} of {} total lines.\n"
    "Action: To read more of the file, you can use the 'start_line' and 'end_line' parameters in a subsequent 'read_file' call."
    "\n\n--- FILE CONTENT (truncated) ---\n"
)


def lines_of(client: str, text: str) -> list[str]:
    """The lines as this client counts them."""
    lines = text.split("\n")
    if client in ("opencode", "codex") and lines[-1] == "":
        lines.pop()
    return lines


def read_arguments(client: str, path: str, first: int | None, count: int | None) -> tuple[str, dict[str, object]]:
    """Tool and arguments of a read."""
    if client == "codex":
        command = (
            f"cat {path}" if first is None and count is None else f"sed -n '{first or 1},{_end(first, count)}p' {path}"
        )
        return "exec_command", {"cmd": command}
    if client == "gemini-cli":
        asked: dict[str, object] = {"file_path": path}
        if first is not None or count is not None:
            asked["start_line"] = first or 1
        if count is not None:
            asked["end_line"] = (first or 1) + count - 1
        return "read_file", asked
    name = {"claude-code": "Read", "opencode": "read", "pi": "read"}[client]
    given: dict[str, object] = {{"claude-code": "file_path", "opencode": "filePath", "pi": "path"}[client]: path}
    if first is not None:
        given["offset"] = first
    if count is not None:
        given["limit"] = count
    return name, given


def _end(first: int | None, count: int | None) -> str:
    return "$" if count is None else str((first or 1) + count - 1)


def shown_by(client: str, path: str, text: str, first: int | None, count: int | None) -> str:
    """What a read answers."""
    lines = lines_of(client, text)
    start = first or 1
    part = lines[start - 1 :] if count is None else lines[start - 1 : start - 1 + count]
    last = start + len(part) - 1
    if client == "claude-code":
        return "\n".join(f"{n}\t{line}" for n, line in enumerate(part, start))
    if client == "opencode":
        rows = "\n".join(f"{n}: {line}" for n, line in enumerate(part, start))
        told = (
            f"Showing lines {start}-{last} of {len(lines)}. Use offset={last + 1} to continue."
            if last < len(lines)
            else f"End of file - total {len(lines)} lines"
        )
        return f"<path>{path}</path>\n<type>file</type>\n<content>\n{rows}\n\n({told})\n</content>"
    if client == "codex":
        head = "Chunk ID: 2a1733\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 58\nOutput:\n"
        return head + "".join(f"{line}\n" for line in part)
    if client == "gemini-cli":
        if len(part) == len(lines):
            return "\n".join(part)
        first_shown = min(start - 1, len(lines)) + 1
        last = len(lines) if count is None else min(start + count - 1, len(lines))
        return GEMINI_HEAD.format(first_shown, last, len(lines)) + "\n".join(part)
    more = len(lines) - last
    return "\n".join(part) + (f"\n\n[{more} more lines in file. Use offset={last + 1} to continue.]" if more else "")


@dataclass
class Talk:
    """A conversation of one client about files that are kept here."""

    client: str
    files: dict[str, str] = field(default_factory=dict)
    state: ClientReads = START
    sent: list[Message] = field(default_factory=list)
    truth: dict[str, str] = field(default_factory=dict)

    @property
    def profile(self) -> Profile:
        return PROFILES[self.client]

    @property
    def reader(self) -> RereadRules:
        return RereadRules(self.profile, least_spared=1)

    def read(self, path: str, first: int | None = None, count: int | None = None) -> str:
        """A read; what stands in the request for it."""
        name, given = read_arguments(self.client, path, first, count)
        return self.call(name, given, shown_by(self.client, path, self.files[path], first, count))

    def write(self, path: str, text: str) -> None:
        self.files[path] = text
        if self.client == "codex":
            body = "\n".join(f"+{line}" for line in text.split("\n"))
            self.call(
                "apply_patch",
                {"input": f"*** Begin Patch\n*** Add File: {path}\n{body}\n*** End Patch"},
                "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.",
            )
            return
        name = {"claude-code": "Write", "gemini-cli": "write_file"}.get(self.client, "write")
        key = {"opencode": "filePath", "pi": "path"}.get(self.client, "file_path")
        self.call(name, {key: path, "content": text}, "Wrote it.")

    def edit(self, path: str, at: int, old: Sequence[str], new: Sequence[str]) -> None:
        """Put whole lines in place of those that stand behind `at` others, if the client could."""
        before = self.files[path]
        lines = before.split("\n")
        after = "\n".join((*lines[:at], *new, *lines[at + len(old) :]))
        spelled_old, spelled_new = "\n".join(old), "\n".join(new)
        if not spelled_old or before.count(spelled_old) != 1 or before.replace(spelled_old, spelled_new) != after:
            return
        self.files[path] = after
        if self.client == "codex":
            body = "\n".join([*(f"-{line}" for line in old), *(f"+{line}" for line in new)])
            patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n{body}\n*** End Patch"
            self.call("apply_patch", {"input": patch}, "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.")
            return
        names: dict[str, tuple[str, dict[str, object]]] = {
            "claude-code": ("Edit", {"file_path": path, "old_string": spelled_old, "new_string": spelled_new}),
            "opencode": ("edit", {"filePath": path, "oldString": spelled_old, "newString": spelled_new}),
            "pi": ("edit", {"path": path, "edits": [{"oldText": spelled_old, "newText": spelled_new}]}),
            "gemini-cli": (
                "replace",
                {"file_path": path, "instruction": "x", "old_string": spelled_old, "new_string": spelled_new},
            ),
        }
        self.call(*names[self.client], "Edited it.")

    def call(self, name: str, arguments: dict[str, object], text: str) -> str:
        """A call and its result; what stands in the request for it."""
        call_id = f"c{len(self.sent)}"
        asked = Message("assistant", (ToolCall(call_id, name, json.dumps(arguments)),))
        self.state = with_message(self.state, self.reader, asked)
        result = ToolResult(call_id, text)
        found = answer(self.state, self.reader, result)
        base = lost_base(self.state, self.reader, result)
        stands = found.text if found is not None else self.truth[base] if base is not None else text
        self.state = with_message(self.state, self.reader, Message("tool", (result,)), {call_id: stands})
        self.truth[call_id] = text
        self.sent += [asked, Message("tool", (ToolResult(call_id, stands),))]
        return stands

    def leave(self, calls: frozenset[str]) -> None:
        """Results leave the window, and what rested on them."""
        gone = calls
        while more := self.state.files.calls_depending_on(gone) - gone:
            gone |= more
        self.state = without(self.state, gone)
        self.sent = [_stubbed(one, gone) for one in self.sent]

    def objections(self) -> tuple[Objection, ...]:
        return witness(self.sent, self.state.files.claims(), self.state.files.versions().get)


def _stubbed(message: Message, gone: frozenset[str]) -> Message:
    blocks = tuple(
        ToolResult(block.call_id, STUB) if isinstance(block, ToolResult) and block.call_id in gone else block
        for block in message.blocks
    )
    return Message(message.role, blocks)
