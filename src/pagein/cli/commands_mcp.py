"""The command that serves pagein's tools to clients of the Model Context Protocol, registered by `cli`.

Heavy imports are inside the command, as in `cli`.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import typer

from pagein.cli.archive_access import GivenWorkspace
from pagein.cli.options import Store
from pagein.errors import BadInput, BadSetting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import BufferedIOBase

    from pagein.mcp.offered_tools import McpTool


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Examples:\n\nclaude mcp add pagein -- pagein mcp\n\npagein mcp --workspace ~/src/app")(mcp)


def mcp(workspace: GivenWorkspace = None, store: Store = None) -> None:
    """Serve `read`, `search` and `peek` to an agent over MCP, on standard input and output.

    For agents whose requests do not pass the gateway, or beside it on the same store. The agent starts this command
    itself; `docs/mcp.md` shows its configuration. The setting `mcp_tools` chooses the tools.
    """
    if find_spec("mcp") is None:  # asked before the handshake, which is answered without the SDK
        raise BadSetting("the MCP server needs more than is installed: pip install 'pagein[mcp]'")
    from pagein.cli.standard_streams import take_standard_streams
    from pagein.mcp.first_answers import FirstAnswers
    from pagein.mcp.offered_tools import chosen
    from pagein.mcp.stdio_server import StdioServer
    from pagein.settings.sources import load_config

    folder = Path() if workspace is None else workspace
    config = load_config(folder).values
    tools = chosen(config["mcp_tools"], deprecated=config["deprecated_tools"] is True)  # type: ignore[arg-type]
    source, sink = take_standard_streams()
    served = StdioServer(
        FirstAnswers(tools),
        lambda taken, given: _serve(tools, workspace, config, _store_near(store, workspace), taken, given),
        source,
        sink,
    )
    served.run()


def _store_near(store: str | None, workspace: Path | None) -> str | Path | None:
    """Return the store: as named, else of the running gateway, else None for the folder's store."""
    from pagein.archive import find_store

    try:
        return find_store(store, workspace).store
    except BadInput:  # there is no store yet
        return store


def _serve(
    tools: "tuple[McpTool, ...]",
    workspace: Path | None,
    config: "Mapping[str, object]",
    store: str | Path | None,
    source: BinaryIO,
    sink: "BufferedIOBase",
) -> None:
    import os

    from pagein import wiring
    from pagein.client_windows.own_window import OwnWindow
    from pagein.gateway.kill_switch import Switch, default_switch
    from pagein.mcp.own_transcripts import OwnTranscripts
    from pagein.mcp.protocol import ClientCalls, make_server, serve_streams
    from pagein.mcp.tool_answers import ToolAnswers

    folder = Path() if workspace is None else workspace

    def take(transcript: Path, session: str) -> None:
        with wiring.open_intake(store, workspace=folder, jobs=1) as intake:
            if session:
                intake.remember_member(transcript, session)
            else:
                intake.remember([transcript])

    with wiring.open(store, workspace=folder) as engine:
        answers = ToolAnswers(
            engine,
            (str(folder), *config["mcp_workspaces"]),  # type: ignore[misc]
            tuple(one.name for one in tools),
            Switch(default_switch(), os.environ).is_off,
            OwnTranscripts(OwnWindow(os.environ, Path.home()), take),
            follows_roots=workspace is None,
        )
        calls = ClientCalls(answers, has_structure=config["mcp_structured"] is True)
        serve_streams(make_server(tools, calls), source, sink)
