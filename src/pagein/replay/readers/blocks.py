"""Content blocks in the Anthropic Messages format, shared by Claude Code and request logs."""

from dataclasses import dataclass, field
from typing import Final

from pagein.model.messages import Block, Image, Other, ShownLines, Text, Thinking, ToolCall, ToolResult, Usage
from pagein.policy.clients.profile import accesses
from pagein.replay.readers.row_fields import Row, count, json_text, number, object_at, objects, text

REMINDER: Final = "<system-reminder>"


@dataclass(slots=True)
class ToolCallIndex:
    """The index of a session's tool calls so far. A result names only the call; the call names the tool.

    cwd: folder of the session; paths inside it are reported relative to it.
    """

    cwd: str | None = None
    _uses: dict[str, int] = field(default_factory=dict)
    _waiting: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    _answered: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add_call(self, call_id: str, name: str, arguments: str) -> ToolCall:
        """Return a tool call with the file accesses found in its arguments.

        A repeated id gets a number: some servers count their calls anew in each turn, and some recordings hide ids.
        """
        uses = self._uses.get(call_id, 0)
        self._uses[call_id] = uses + 1
        own = f"{call_id}~{uses}" if uses else call_id
        self._waiting.setdefault(call_id, []).append((own, name))
        return ToolCall(own, name, arguments, accesses(name, arguments, self.cwd))

    def begin_anew(self) -> None:
        """Begin a new window: later results answer only calls of this window."""
        self._waiting.clear()
        self._answered.clear()

    def answers(self, call_id: str) -> tuple[str, str]:
        """Return id and tool of the call answered by a result with this id; the tool is "" for an unrecorded call."""
        waiting = self._waiting.get(call_id)
        if waiting:
            self._answered[call_id] = waiting.pop(0)
        return self._answered.get(call_id, (call_id, ""))


def content_blocks(content: object, calls: ToolCallIndex, injected: str | None = None) -> tuple[Block, ...]:
    """Return the blocks of a message's content, text or list."""
    if isinstance(content, str):
        return (text_block(content, injected),) if content else ()
    return tuple(_block(row, calls, injected) for row in objects(content))


def text_block(words: str, injected: str | None = None) -> Text:
    """Return a text of the user or the model, or of the host where its wrapper shows this."""
    if injected is None and words.startswith(REMINDER):
        return Text(words, "system_reminder")
    return Text(words, injected)


def _block(row: Row, calls: ToolCallIndex, injected: str | None) -> Block:
    kind = text(row, "type") or "unknown"
    if kind == "text":
        return text_block(text(row, "text") or "", injected)
    if kind in ("thinking", "redacted_thinking"):
        bound = text(row, "signature", "data")
        return Thinking(text(row, "thinking") or "", bound, redacted=kind == "redacted_thinking")
    if kind == "tool_use":
        return calls.add_call(text(row, "id") or "", text(row, "name") or "", json_text(row.get("input", {})))
    if kind == "tool_result":
        return result_of_block(row, calls)
    return image(row) if kind == "image" else Other(kind, json_text(row))


def result_of_block(row: Row, calls: ToolCallIndex, shown: ShownLines | None = None) -> ToolResult:
    """Return the tool result of a block."""
    call_id, name = calls.answers(text(row, "tool_use_id") or "")
    words, images = flat(row.get("content"))
    return ToolResult(call_id, words, name, row.get("is_error") is True, images, shown)


def flat(content: object) -> tuple[str, tuple[Image, ...]]:
    """Return the text and the images of a result; texts of several blocks are joined by a line break."""
    if isinstance(content, str):
        return content, ()
    words: list[str] = []
    images: list[Image] = []
    for row in objects(content):
        kind = text(row, "type")
        if kind in ("text", "input_text", "output_text"):
            words.append(text(row, "text") or "")
        elif kind in ("image", "input_image"):
            images.append(image(row))
        elif kind == "tool_reference":
            words.append(f"[tool_reference {text(row, 'tool_name') or ''}]")
        else:
            words.append(json_text(row))
    return "\n".join(words), tuple(images)


def image(row: Row) -> Image:
    """Return an image block of any format. Its data stays in the recording; only the size is reported."""
    source = object_at(row, "source") or row
    data = text(source, "data", "image_url", "url") or text(object_at(row, "image_url"), "url") or ""
    kind = text(source, "media_type", "mimeType", "mime") or data.partition(":")[2].partition(";")[0]
    return Image(kind, number(row, "b64_chars") or len(data.partition("base64,")[2] or data))


def anthropic_usage(row: Row) -> Usage | None:
    """Return the usage as reported by the Anthropic API, or None without a report."""
    if not row:
        return None
    parts = object_at(row, "cache_creation")
    long, short = count(parts, "ephemeral_1h_input_tokens"), count(parts, "ephemeral_5m_input_tokens")
    written = max(count(row, "cache_creation_input_tokens"), long + short)
    return Usage(
        fresh=count(row, "input_tokens"),
        read=count(row, "cache_read_input_tokens"),
        written=written,
        written_1h=long,
        output=count(row, "output_tokens"),
    )
