"""The tools replaced by `read`: `read_file`, `read_symbol`, `get_snippet` and `dry_run_diff`.

Each maps its arguments to those of `read`, and nothing else. They are answered for callers that know them; a host offers them
only if the setting `deprecated_tools` asks for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.model.guard_notes import ReadMode
from pagein.tools.calls import Call, Offer, schema
from pagein.tools.reading.argument_matrix import MATRIX
from pagein.tools.reading.unified_read import answer_unified_read


@dataclass(frozen=True, slots=True)
class LegacyTool:
    """A tool replaced by `read`.

    targets: its argument names for `target`; the first given name counts. renamed: its names for other arguments of `read`.
    """

    name: str
    mode: ReadMode
    targets: tuple[str, ...]
    renamed: Mapping[str, str]

    def arguments(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments of `read` for a call."""
        target = next((name for name in self.targets if given.get(name) is not None), None)
        rest = {self.renamed.get(name, name): value for name, value in given.items() if name not in self.targets}
        return {"mode": self.mode, **({} if target is None else {"target": given[target]}), **rest}

    @property
    def offer(self) -> Offer:
        """The tool as it is offered to a model."""
        known = {
            row.name: row.schema for row in MATRIX if self.mode in row.modes and row.name not in {"mode", "target"}
        }
        old = {new: name for name, new in self.renamed.items()}
        properties = {old.get(name, name): one for name, one in known.items()}
        first = {self.targets[0]: {"type": "string", "description": f"The target of read with mode={self.mode}."}}

        def answer(session: Session, call: Call) -> ReadResult:
            return answer_unified_read(session, self.arguments(call.arguments), call.signal)

        told = f"Deprecated: use read with mode={self.mode}, which this tool calls."
        return Offer(self.name, told, schema((self.targets[0],), **first, **properties), answer)


_TOOLS: Final = (
    LegacyTool("read_file", "file", ("path", "target"), {}),
    LegacyTool("read_symbol", "symbol", ("symbol_id", "sid", "name", "symbol", "target"), {}),
    LegacyTool("get_snippet", "snippet", ("path", "target"), {"query": "pattern", "max_results": "limit"}),
    LegacyTool("dry_run_diff", "diff_preview", ("path", "target"), {}),
)

LEGACY_TOOLS: Final = tuple(tool.offer for tool in _TOOLS)


def legacy_arguments(name: str, given: Mapping[str, object]) -> dict[str, object] | None:
    """Return the arguments of `read` for a call of a replaced tool; None for any other tool."""
    tool = next((one for one in _TOOLS if one.name == name), None)
    return None if tool is None else tool.arguments(given)
