"""An assembled prompt: the caller's contents, and the ordered blocks of a layout."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pagein.model.messages import Block, Message, Role

Speaker: TypeAlias = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """A message in the history of an assembled prompt."""

    role: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class PromptContents:
    """What a caller puts into a prompt.

    system, legend: the instructions, and what the abbreviations in symbol entries mean.
    files: whole files by path. `selected` are the paths that the user works with; None for all of them.
    symbols: compact entries of files, by path. The entry of a selected file is left out: its text is there.
    urls: pages from the web, by address.
    tree: the list of files.
    history: the conversation before the prompt, oldest first.
    prompt: the user's new words.
    conversation: the whole conversation of an agent with its calls and results, in place of history and prompt.
    objects: the texts of objects, by version.
    """

    prompt: str = ""
    system: str = ""
    legend: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    selected: Collection[str] | None = None
    symbols: Mapping[str, str] = field(default_factory=dict)
    urls: Mapping[str, str] = field(default_factory=dict)
    tree: str = ""
    history: Sequence[HistoryMessage] = ()
    conversation: Sequence[Message] = ()
    objects: Mapping[str, str] = field(default_factory=dict)

    @property
    def chosen(self) -> frozenset[str]:
        """The paths of the selected files."""
        return frozenset(self.files) if self.selected is None else frozenset(self.files).intersection(self.selected)


@dataclass(frozen=True, slots=True)
class LayoutFacts:
    """The facts of a request given to a layout beside the state.

    count: returns the tokens of a text.
    min_prefix: smallest prefix that the provider caches, in tokens.
    covered: messages of the conversation up to the last request's final breakpoint, its prompt included; 0 if unknown.
    """

    contents: PromptContents
    count: Callable[[str], float]
    min_prefix: int = 0
    covered: int = 0


@dataclass(frozen=True, slots=True)
class LaidBlock:
    """A block of an assembled prompt.

    section: what it belongs to: a tier, `system`, `metadata`, `tree`, `urls`, `active`, `history`, `news` or `prompt`.
    tokens: its size.
    mark: whether it carries a cache breakpoint.
    content: the block that is sent, if it is more than the text: a call, a result, signed thinking, an image.
    """

    role: Role
    section: str
    text: str
    tokens: float = 0.0
    mark: bool = False
    content: Block | None = None


@dataclass(frozen=True, slots=True)
class LaidPrompt:
    """An assembled prompt, in order. Blocks of the same role in a row are one message.

    covered: messages of the conversation up to the final breakpoint, the prompt included, for the next `LayoutFacts`.
    """

    blocks: tuple[LaidBlock, ...]
    covered: int = 0

    @property
    def marks(self) -> tuple[int, ...]:
        """The places of the breakpoints, from 0."""
        return tuple(place for place, block in enumerate(self.blocks) if block.mark)

    @property
    def tokens(self) -> float:
        """The size of the prompt."""
        return sum(block.tokens for block in self.blocks)
