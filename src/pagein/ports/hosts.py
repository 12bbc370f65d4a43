"""The interface to a host, a program that runs agents: the hooks that pagein needs, and the duties of an adapter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from pagein.model.messages import Message, ToolCall

Hook: TypeAlias = Literal["context", "tools", "tool_events", "session"]
"""What a host lets an adapter do: build the context of a request, register tools, observe tool calls, know the session."""


@dataclass(frozen=True, slots=True)
class HookLoss:
    """The loss of a host that lacks a hook, in words.

    missing: the hook. lost: what does not work without it. remains: what still does.
    """

    missing: str
    lost: str
    remains: str


HOOK_LOSSES: Final[Mapping[Hook, HookLoss]] = {
    "context": HookLoss(
        "a hook before each request",
        "paging and the pooled layout; a marker that got in front of its text stays there",
        "answers to repeated reads, which rest on text that never leaves",
    ),
    "tools": HookLoss(
        "registered tools",
        "the model's own way to what left (`rlm_peek`, `rlm_search`) and to refreshes",
        "a person and a shell: `pagein peek`, `pagein search`, `/readcache-refresh`",
    ),
    "tool_events": HookLoss(
        "events around tool calls",
        "answers to repeated reads, the guard against stubs in files",
        "paging",
    ),
    "session": HookLoss(
        "a name of the session",
        "resuming: each start begins with an empty journal",
        "everything else, rebuilt from the branch",
    ),
}
"""The minimum hooks. `pagein.testing.host_contract` tests each row."""


class HostAdapter(Protocol):
    """The layer between a session of a host and the engine. An adapter translates, and decides nothing.

    Its four duties: extract events (`follow`), register tools (`tools`, `answer`), return the context (`context`), and
    absorb the host's quirks (`follow`): a history that was replaced, and messages that pagein does not know. It never
    changes the host's own messages, and nothing of it raises into the host.
    """

    @property
    def hooks(self) -> frozenset[Hook]:
        """The hooks of the host."""
        ...

    def follow(self, history: Sequence[object]) -> None:
        """Append the host's new messages to the session.

        history: the messages from the first on, `Message` or of a kind that pagein does not know. It need not extend the
            history of the call before: the host may have gone to another branch, or begun anew.
        """
        ...

    def context(self) -> Sequence[Message]:
        """Return the window for the model, from the last followed history. Journals the request as sent."""
        ...

    def tools(self) -> frozenset[str]:
        """Return the names of the registered tools."""
        ...

    def answer(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the answer to a call of a registered tool."""
        ...

    def tool_ran(self, call: ToolCall, text: str) -> str:
        """Observe a call of the host's own tool. Returns the result's text for the host's history."""
        ...
