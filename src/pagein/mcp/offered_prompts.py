"""The prompts that MCP clients are offered: ways to explore what is stored, each as a chain of tool calls.

A client shows them to its user as commands. They cost a model nothing until one is used. Their bytes are equal at each
start, and depend on the names of the offered tools alone.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Names: TypeAlias = Collection[str]


@dataclass(frozen=True, slots=True)
class OfferedPrompt:
    """A prompt as MCP clients are offered it.

    needs: tools without which it is not offered.
    arguments: what each required argument means.
    text: returns the prompt's text, given the arguments and the names of the offered tools.
    """

    name: str
    description: str
    needs: tuple[str, ...]
    arguments: Mapping[str, str]
    text: Callable[[Mapping[str, str], Names], str]

    @property
    def definition(self) -> dict[str, Any]:
        """The prompt in the protocol's own form."""
        told = [{"name": name, "description": words, "required": True} for name, words in self.arguments.items()]
        return {"name": self.name, "description": self.description, "arguments": told}


def _search_then_peek(given: Mapping[str, str], tools: Names) -> str:
    del tools
    return (
        f"Find out: {given['question']}\n\n"
        "Work in this order. 1. Call `search` with a word or /regex/ that must stand there; narrow it by path, session or time if there "
        "are many matches. 2. Call `peek` with the id of each match that looks right, to read the text around it. 3. Answer from what "
        "`peek` showed, and name the ids. If nothing is found, say so and tell which patterns you tried."
    )


def _ingest_partition_query(given: Mapping[str, str], tools: Names) -> str:
    each = (
        "Call `batch` with the question and these ids: each file is read by a model of its own, beside your context."
        if "batch" in tools
        else "Call `search` with patterns that bear on the question, then `peek` at the matches of one file after the other."
    )
    return (
        f"Answer this over many files: {given['question']}\n\n"
        f"Work in this order. 1. Call `ingest` with {given['paths']}, which stores the files without showing them. Keep the ids. 2. {each} "
        "3. Put the answers together, and name for each the files that it rests on."
    )


def _drill_down(given: Mapping[str, str], tools: Names) -> str:
    first = (
        "Call `query` with the question and this id, and ask for the lines that the answer rests on."
        if "query" in tools
        else "Call `peek` with this id for its beginning, then `search` for what the beginning points to."
    )
    return (
        f"Find this out in the stored object {given['id']}: {given['question']}\n\n"
        f"Work in this order. 1. {first} 2. Call `peek` with this id, and `line` or `around`, to read that part yourself. 3. Go on into "
        "smaller parts until you have the answer, and quote the lines that it rests on."
    )


_QUESTION: Final = "What you want to know."
PROMPTS: Final = (
    OfferedPrompt(
        "drill_down",
        "Explore one large stored object, part by part.",
        ("peek", "search"),
        {"id": "Id of the object, such as pg-01234567-89abcdef.", "question": _QUESTION},
        _drill_down,
    ),
    OfferedPrompt(
        "ingest_partition_query",
        "Answer a question over many files without showing them in the context.",
        ("ingest", "peek", "search"),
        {"paths": "Files, folders or globs.", "question": _QUESTION},
        _ingest_partition_query,
    ),
    OfferedPrompt(
        "search_then_peek",
        "Find something in what earlier sessions said, did, read and wrote.",
        ("peek", "search"),
        {"question": _QUESTION},
        _search_then_peek,
    ),
)
"""Every prompt, by its name."""


def prompts_for(tools: Names) -> tuple[OfferedPrompt, ...]:
    """Return the prompts for the offered tools."""
    return tuple(one for one in PROMPTS if set(one.needs) <= set(tools))
