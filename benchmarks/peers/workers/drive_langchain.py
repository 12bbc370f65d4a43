"""LangChain's context editing: `ClearToolUsesEdit(trigger=100_000, keep=3)` on its own message classes.

default: counted as the middleware does by itself, by characters, of the messages alone. counted: told the size of the whole
prompt as recorded, which an application can learn from the usage of the call before.
"""

import importlib
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.workers.serving import Facts, Message, Strategy, serve

TRIGGER, KEEP = 100_000, 3


def open_strategy(variant: str) -> Strategy:
    """The middleware decides anew at every call: its edits are not kept."""
    editing: Any = importlib.import_module("langchain.agents.middleware.context_editing")
    core: Any = importlib.import_module("langchain_core.messages")
    utils: Any = importlib.import_module("langchain_core.messages.utils")
    edit = editing.ClearToolUsesEdit(trigger=TRIGGER, keep=KEEP)

    def strategy(messages: list[Message], facts: Facts) -> Sequence[Message]:
        prompt = facts["tokens"]
        theirs = core.convert_to_messages(messages)
        before = list(theirs)
        count = (lambda _: prompt) if variant == "counted" else utils.count_tokens_approximately
        edit.apply(theirs, count_tokens=count)
        # What was not edited goes out as it came in, so that a detour through other classes changes no byte of it.
        return [
            raw if same is now else {**raw, "content": now.content}
            for raw, same, now in zip(messages, before, theirs, strict=True)
        ]

    return strategy


if __name__ == "__main__":
    serve(open_strategy, "langchain")
