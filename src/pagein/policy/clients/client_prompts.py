"""Recognise texts that a client writes in the user's name: requests for titles, summaries, notices, commands such as `/clear`.

`user_words` is the one rule for the words of a user: titles, chats, searches and blame show what it returns. Measured with
the clients of docs/clients.md and on recorded sessions. A text that is not known here counts as words of the user.
"""

import re
from typing import Final

from pagein.model.messages import Message, Role, Text
from pagein.policy.eviction.session_work import words_of_person

_PROMPTS: Final = re.compile(
    r"\s*(?:"
    r"Generate a title for this conversation\b"  # opencode
    r"|Here is the conversation so far:\s*<conversation>"  # opencode
    r"|(?:What did we do so far\?|Continue if you have next steps, or stop and ask for clarification if you are unsure how to"
    r" proceed\.)\s*\Z"  # opencode
    r"|You are performing a CONTEXT CHECKPOINT COMPACTION\b"  # codex
    r"|Another language model started to solve this problem and produced a summary\b"  # codex
    r"|The conversation history before this point was compacted into the following summary:"  # pi
    r"|(?:<conversation>.*</conversation>\s*)?The messages above are a conversation to summarize\b"  # pi
    r"|<session>.*</session>\s*Write the title\b"  # Claude Code
    r"|CRITICAL: Respond with TEXT ONLY\. Do NOT call any tools\."  # Claude Code
    r"|(?=<command-)(?=.*<command-name>/(?:clear|compact|config|context|cost|doctor|exit|help|login|logout|mcp|memory|model|"
    r"permissions|quit|resume|status|usage|vim)</command-name>)"  # Claude Code
    r"(?:<(command-(?:name|message|args))>[^<]*</\1>\s*)+\Z"
    r"|<local-command-stdout>[^<]*</local-command-stdout>\s*\Z"  # Claude Code
    r"|/clear\s*\Z"
    r"|Continue from where you left off\.\s*\Z"  # Claude Code
    r"|\[Request interrupted by user(?: for tool use)?\]\s*\Z"  # Claude Code
    r"|(?:<(task-notification|ci-monitor-event|bash-stdout|bash-stderr|turn_aborted)>(?>.*?</\2>)\s*)+\Z"  # Claude Code, codex
    r"|This session is being continued from a previous conversation that ran out of context\b"  # Claude Code
    r")",
    re.DOTALL,
)
_SUMMARIES: Final = re.compile(
    r"\s*(?:Another language model started to solve this problem and produced a summary\b"  # codex
    r"|The conversation history before this point was compacted into the following summary:"  # pi
    r"|What did we do so far\?\s*\Z"  # opencode
    r"|This session is being continued from a previous conversation that ran out of context\b)"  # Claude Code
)
_BESIDE: Final = re.compile(
    r"\A<system-reminder>[^\n]*</system-reminder>(?=\n)|^<system-reminder>.*</system-reminder>(?=\s*\Z)",
    re.DOTALL | re.MULTILINE,
)  # Claude Code, opencode


def words_beside(text: str) -> tuple[str, ...]:
    """Return what a client told its model around the lines of a file in the result of a read, such as words of the user."""
    return tuple(found[0] for found in _BESIDE.finditer(text))


def is_summary(text: str) -> bool:
    """Return whether a client continues after a compaction with this text."""
    return _SUMMARIES.match(text) is not None


def has_summary(message: Message) -> bool:
    """Return whether a message of the user's side begins with a client's summary."""
    return message.role == "user" and any(isinstance(one, Text) and is_summary(one.text) for one in message.blocks)


def is_client_prompt(text: str) -> bool:
    """Return whether a message of the user's side is the client's own request, summary or command."""
    return _PROMPTS.match(text) is not None


def user_words(message: Message) -> str:
    """Return the words of the user in a message, without texts added by the host or the client."""
    texts = (words_in(message.role, block) for block in message.blocks if isinstance(block, Text))
    return "\n".join(words for words in texts if words)


def words_in(role: Role, text: Text) -> str:
    """Return the words of the user in a text of a message with this role; "" for a text of the host or the client."""
    if role != "user" or text.injected is not None or is_client_prompt(text.text):
        return ""
    return words_of_person(text.text)
