"""The notice of the echo guard: tell the model after a call wrote a stub or marker into a file (law 8).

For clients where pagein cannot hold a call back. The gateway sees a call when it is in the reply, and its result with
the next request. The reply stays unchanged (thinking may be bound to it); the notice goes after the results of that
request, once.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.clients.profile import Profile
from pagein.policy.reads.echo_forms import may_echo
from pagein.policy.reads.echo_guard import Echo, Facts, OwnTexts, echoes, facts_of

_HARMLESS: Final = re.compile(r"\d*>{1,2}\s*(?:/dev/null|&\d)|&>\s*/dev/null")
_WRITES: Final = re.compile(r">|<<|\btee\b|\bsed\b[^\n|;]{0,200}\s(?:-i|--in-place)|\bapply_patch\b|\bpatch\b")
_MARKER_ROW: Final = re.compile(r"^\[readcache: [^\]\n]*\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EchoHit:
    """A call that wrote a stub or marker.

    echoes: that text. files: the files written, as far as the call names them.
    """

    call_id: str
    tool: str
    echoes: tuple[Echo, ...]
    files: tuple[str, ...]

    def notice(self, peek: str = "peek", read: str = "read") -> str:
        """Return the notice for the model.

        peek, read: names of the tools that return the text.
        """
        where = ", ".join(self.files) or "a file"
        stubs = dict.fromkeys(one.object_id for one in self.echoes if one.object_id is not None)
        marked = dict.fromkeys(one.text for one in self.echoes if one.kind == "marker")
        return "\n".join(
            [
                (
                    f"[pagein notice: the {self.tool} call above put text into {where} that only stands for other text. "
                    "What it stands for is not in the file now.]"
                ),
                *(f'- get the text behind {one} with {peek}("{one}") and write that in its place' for one in stubs),
                *(
                    f"- {one} stands for lines shown earlier: {read} them and write those in its place"
                    for one in marked
                ),
            ]
        )


def echo_hit(profile: Profile, call: ToolCall, result: ToolResult, owned: OwnTexts) -> EchoHit | None:
    """Return the stubs and markers written into a file by a successful call; None for a clean text."""
    if not may_echo(call.arguments) or profile.is_failure(call, result):
        return None
    meaning = profile.effect_of(call)
    if meaning.op not in ("write", "edit") and not (meaning.op == "exec" and _may_write(call.arguments)):
        return None
    found = echoes(call, owned)
    files = tuple(dict.fromkeys(one.path for one in meaning.accesses if one.op in ("write", "edit")))
    return EchoHit(call.id, call.name, found, files) if found else None


def facts_in(stands: Iterable[str]) -> Iterator[Facts]:
    """Yield the markers in texts that replace results, in the form of `OwnTexts`."""
    for text in stands:
        for match in _MARKER_ROW.finditer(text):
            yield facts_of(match[0])


def _may_write(arguments: str) -> bool:
    return _WRITES.search(_HARMLESS.sub(" ", arguments)) is not None
