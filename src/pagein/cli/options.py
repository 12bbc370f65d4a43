"""Options shared by several commands: each has a single name, meaning and help text."""

import inspect
from collections.abc import Callable
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from pagein.providers.vendors import VENDORS, Vendor

Workspace: TypeAlias = Annotated[
    Path,
    typer.Option("--workspace", "-w", metavar="DIR", help="The working folder, which also selects the store."),
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
    typer.Option(
        "--session", "-s", metavar="NAME", envvar="PAGEIN_SESSION", help="The session; created if it does not exist."
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
GatewayUrl: TypeAlias = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="The gateway.", show_default="http://127.0.0.1:8790, or as PAGEIN_* say"),
]
NearestGatewayUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="The gateway.",
        show_default="the running one for this folder or above, else http://127.0.0.1:8790, or as PAGEIN_* say",
    ),
]
Upstreams: TypeAlias = dict[str, str]
"""Addresses given by the options of the vendors, by the vendor's name."""


def with_upstream_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for the address of each vendor, in place of its parameter `upstreams`."""
    told = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    options = [Parameter(one.name, Parameter.KEYWORD_ONLY, default=None, annotation=_address(one)) for one in VENDORS]
    parameters = [
        made
        for name, one in told.parameters.items()
        for made in (options if name == "upstreams" else [one.replace(annotation=hints[name])])
    ]

    @wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401 - the values of any options
        addresses = {one.name: given.pop(one.name) for one in VENDORS}
        command(upstreams={name: address for name, address in addresses.items() if address is not None}, **given)

    run.__signature__ = told.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _address(vendor: Vendor) -> object:
    return Annotated[
        str | None,
        typer.Option(
            f"--{vendor.name}",
            metavar="URL",
            help=f"Where requests for {vendor.title} go.",
            show_default=f"PAGEIN_{vendor.name.upper()}, or the vendor",
        ),
    ]
