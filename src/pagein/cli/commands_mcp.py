"""The command that serves pagein's tools to clients of the Model Context Protocol, registered by `cli`.

Heavy imports are inside the command, as in `cli`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import typer

from pagein.cli.options import Store, Workspace
from pagein.errors import BadInput

if TYPE_CHECKING:
    from pagein.mcp.offered_tools import OfferedTool


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Examples:\n\nclaude mcp add pagein -- pagein mcp\n\npagein mcp --workspace ~/src/app")(mcp)


def mcp(workspace: Workspace = Path(), store: Store = None) -> None:
    """Serve `read`, `search` and `peek` to an agent over MCP, on standard input and output.

    For agents whose requests do not pass the gateway, or beside it on the same store. The agent starts this command
    itself; `docs/mcp.md` shows its configuration. The setting `mcp_tools` chooses the tools.
    """
    from pagein.mcp.offered_tools import TOOLS, USUAL, offered
    from pagein.mcp.stdio_server import FirstAnswers, StdioServer, take_standard_streams
    from pagein.settings.sources import load_config

    more = load_config(workspace).values["mcp_tools"]
    names = (*USUAL, *more)  # type: ignore[misc]
    strange = sorted(set(names) - set(TOOLS))
    if strange:
        raise BadInput(f"mcp_tools: there is no tool {strange[0]!r}; the tools are {', '.join(sorted(TOOLS))}")
    tools = offered(names)
    source, sink = take_standard_streams()
    StdioServer(
        FirstAnswers(tools), lambda taken, given: _serve(tools, workspace, store, taken, given), source, sink
    ).run()


def _serve(
    tools: "tuple[OfferedTool, ...]", workspace: Path, store: str | None, source: BinaryIO, sink: BinaryIO
) -> None:
    from pagein import wiring
    from pagein.mcp.protocol import make_server, serve_streams
    from pagein.mcp.tool_answers import ToolAnswers

    with wiring.open(store, workspace=workspace) as engine:
        answers = ToolAnswers(engine, str(workspace), tuple(one.name for one in tools))
        serve_streams(make_server(tools, answers), source, sink)
