"""The compared programs, how each is used, and its cost of a recall."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pagein.providers.validity import Api
from pagein.replay.policies.ledger import Recall

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]


@dataclass(frozen=True, slots=True)
class Peer:
    """A product under comparison. worker: the module that drives it. What is installed stands in `locks/NAME.lock`.

    caveat: what a reader of its figures must know. surroundings: variables of its environment, beside a home folder of its own.
    """

    name: str
    worker: str
    caveat: str
    surroundings: tuple[tuple[str, str], ...] = ()

    @property
    def lock(self) -> Path:
        """Every package with version and hashes."""
        return HERE / "locks" / f"{self.name}.lock"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of using one peer: a row of the tables.

    api: the shape of messages that it gets. recall: what comes back when something is needed again: a slice where the peer can
    give part of what it stored, else all (the whole original, or the tool run once more). does: in words, for the page.
    """

    peer: Peer
    variant: str
    api: Api
    recall: Recall
    does: str

    @property
    def name(self) -> str:
        """As the tables show it."""
        return f"{self.peer.name}, {self.variant}" if self.variant else self.peer.name


HEADROOM: Final = Peer(
    "headroom",
    "benchmarks.peers.workers.drive_headroom",
    "Installed with its extras `proxy`, `mcp` and `code`, without the weights of its text model, which are not part of the "
    "package: its effect on long prose is not measured, nor its proxy.",
    (
        ("HF_HUB_OFFLINE", "1"),
        ("TRANSFORMERS_OFFLINE", "1"),
        ("HEADROOM_TELEMETRY", "off"),
        ("HEADROOM_UPDATE_CHECK", "off"),
    ),
)
DISTIL: Final = Peer(
    "distil",
    "benchmarks.peers.workers.drive_distil",
    "It gets Chat Completions, because it ignores results inside of Anthropic Messages. An unseen quote costs a "
    "further call and is not lost. Its proxy is not measured.",
)
TRIMTOK: Final = Peer(
    "trimtok",
    "benchmarks.peers.workers.drive_trimtok",
    "Called once for each result. Its masking of old turns, in a plug-in for another host, is not measured.",
)
CTX_SLIM: Final = Peer(
    "ctx-slim",
    "benchmarks.peers.workers.drive_ctx_slim",
    "It is told that the model is `anthropic/claude-opus-5`. In Anthropic Messages it replaces a message with results by a "
    "string, which providers refuse ([rule M1](rules.md#rules)); the recorded request is sent instead.",
)
LANGCHAIN: Final = Peer(
    "langchain",
    "benchmarks.peers.workers.drive_langchain",
    "It offers no recall: each fault is charged as one more run of the tool, with its whole result.",
)

ARMS: Final = (
    Arm(HEADROOM, "default", "anthropic", "slice", "`compress(messages)` on the whole history at every call"),
    Arm(
        HEADROOM,
        "frozen",
        "anthropic",
        "slice",
        "`compress` on its previous output and the new messages, with `frozen_message_count`",
    ),
    Arm(HEADROOM, "agent", "anthropic", "slice", '`compress(mode="agent")`: lossless rewriting only'),
    Arm(DISTIL, "default", "openai_chat", "full", "`compress_messages`: results become digests with a handle"),
    Arm(DISTIL, "verbatim", "openai_chat", "full", "`compress_messages(verbatim=True)`: lossless only"),
    Arm(TRIMTOK, "", "openai_chat", "slice", "`compress_terminal` and `compress_tool_result`, each result once"),
    Arm(CTX_SLIM, "default", "openai_chat", "full", "`plan` and `apply` before every call, balanced preset"),
    Arm(CTX_SLIM, "horizon", "openai_chat", "full", "the same, told that 100 calls will follow"),
    Arm(
        CTX_SLIM,
        "messages",
        "anthropic",
        "full",
        "the same as `horizon`, given Anthropic Messages instead of Chat Completions",
    ),
    Arm(
        LANGCHAIN,
        "default",
        "openai_chat",
        "full",
        "`ClearToolUsesEdit(trigger=100_000, keep=3)`, counting characters of the messages",
    ),
    Arm(LANGCHAIN, "counted", "openai_chat", "full", "the same, with the true size of every prompt"),
)
