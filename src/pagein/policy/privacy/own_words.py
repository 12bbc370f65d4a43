"""The words of pagein's own records: names of fields, and values that no conversation wrote.

Each version of an object is stored as a record with these words. With a tombstone of one of them, no object could be stored
any more, so they cannot be forgotten.
"""

from typing import Final

FIELDS: Final = frozenset((
    "$ref", "active_set", "additional", "args", "args_display", "arguments", "at", "before", "blocks", "call",
    "call_id", "chars", "chat_ref", "chats", "content", "content_hash", "created_at", "cwd", "deleted",
    "depth", "digest", "field", "file_hash", "file_refs", "file_type", "fresh", "frontmatter", "generator",
    "harness", "home", "id", "inactive_set", "injected", "known", "last_end", "last_path", "line", "lines",
    "links", "locked", "long_summary", "message", "metadata", "metadata_view_hash", "model", "models", "name",
    "nickname", "object", "object_hash", "op", "origin", "output", "parent", "parent_refs", "part", "parts",
    "path", "pin", "pinned_set", "place", "proof", "provenance", "read", "records", "redacted", "relation",
    "role", "said", "session_id", "session_ref", "short_summary", "signature", "size", "spans", "status",
    "step_count", "steps", "stop", "summarised_turns", "tags", "target_refs", "targets", "text", "text_id",
    "title", "to", "tool", "toolcall", "turn", "turn_count", "turn_ref", "type", "unread", "usage",
    "user_ref", "v", "view", "withheld", "written", "written_1h",
))  # fmt: skip
"""Names of fields, besides those of turns (`turns.1.1`)."""
VALUES: Final = frozenset((
    "agent", "artifact", "asked", "assistant", "call", "chat", "delete", "edit", "edited", "fail", "file",
    "human", "likely", "name", "note", "ok", "part", "read", "session", "shown", "system", "system_prompt",
    "text", "thinking", "tool", "tool_call", "toolcall", "user", "whole", "write", "written",
))  # fmt: skip
"""Values of the fields `generator`, `known`, `op`, `proof`, `relation`, `role`, `status` and `type`."""
_RECORD: Final = tuple(f'"{one}":' for one in (*sorted(FIELDS), "turns.1.1")) + tuple(
    f'"{one}"' for one in sorted(VALUES)
)


def is_own_word(text: str) -> bool:
    """Return whether a text is a part of one of these words, as records have it."""
    return any(text in one for one in _RECORD)
