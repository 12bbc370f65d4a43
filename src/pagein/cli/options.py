"""Options shared by several commands: each has a single name, meaning and help text."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Workspace: TypeAlias = Annotated[
    Path,
    typer.Option("--workspace", "-w", metavar="DIR", help="The folder that is worked in; also whose store is used."),
]
Store: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PATH|URL",
        envvar="PAGEIN_STORE",
        help="The store's file, or postgresql://... for a database.",
        show_default="the workspace's, in the user's data folder",
    ),
]
SessionName: TypeAlias = Annotated[
    str,
    typer.Option("--session", "-s", metavar="NAME", envvar="PAGEIN_SESSION", help="The session; begun if it is new."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Anthropic: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--anthropic",
        metavar="URL",
        help="Where requests for Anthropic go.",
        show_default="PAGEIN_ANTHROPIC, or the vendor",
    ),
]
OpenAI: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--openai", metavar="URL", help="Where requests for OpenAI go.", show_default="PAGEIN_OPENAI, or the vendor"
    ),
]
Google: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--google", metavar="URL", help="Where requests for Gemini go.", show_default="PAGEIN_GOOGLE, or the vendor"
    ),
]
