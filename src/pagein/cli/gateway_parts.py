"""The parts of the gateway that `serve` starts: from the options and settings, on the store that is meant.

Heavy imports are inside the functions, as in `cli`.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from pagein.errors import BadInput, BadSetting

if TYPE_CHECKING:
    from logging import Logger

    from pagein.engine.engine import Engine
    from pagein.gateway.curation.file_follower import FileFollower
    from pagein.gateway.curation.session_keeper import Apply
    from pagein.gateway.http.access import Handler
    from pagein.gateway.kill_switch import Switch
    from pagein.gateway.pages.session_views import HitView, Search
    from pagein.gateway.server import GatewayParts
    from pagein.gateway.settings import GatewaySettings
    from pagein.ports import DerivedLayer

# Share of a decision's time for waiting for the store, once for threads and once for processes. The rest is for the fallback (law 7).
_PATIENCE = 0.4
_DAY = 86_400.0
_GIGABYTE = 1_000_000_000


def measuring_parts(log: Path | None) -> "GatewayParts":
    """Return the parts of a gateway that only measures: nothing of a store."""
    return _usual_parts(log, _switch())


def _usual_parts(log: Path | None, switch: "Switch") -> "GatewayParts":
    """Return the parts that every gateway has."""
    from pagein.gateway.pages.json_logs import logger_to
    from pagein.gateway.server import GatewayParts

    return GatewayParts(switch=switch, logger=logger_to(_log_stream(log)), token=_token())


def _switch() -> "Switch":
    from pagein.gateway.kill_switch import Switch, default_switch

    return Switch(default_switch(), os.environ)


def deciding_parts(store: str | None, workspace: Path, log: Path | None, settings: "GatewaySettings") -> "GatewayParts":
    """Return the parts of a gateway that decides, with those of a measuring one."""
    from pagein import wiring
    from pagein.gateway.curation.branch_children import TOOLS, GatewayChildren
    from pagein.gateway.curation.engine_curator import EngineCurator, ToolTerms
    from pagein.gateway.curation.layer_follower import LayerFollower
    from pagein.gateway.curation.session_keeper import SessionKeeper
    from pagein.gateway.guard_reports import guarded_sessions
    from pagein.gateway.pages.session_views import EngineLooker
    from pagein.gateway.pages.stored_sessions import SessionArchive
    from pagein.gateway.pages.window_orders import EngineHand
    from pagein.settings.sources import load_config

    config, every = load_config(workspace), settings.recall_everything
    engine, layers = wiring.open_with_layers(store, workspace=workspace, patience=settings.budget * _PATIENCE)
    switch = _switch()
    parts = _usual_parts(log, switch)
    files = _file_follower(store, workspace, settings, layers, parts.logger)
    asked = GatewayChildren(engine, config.delegation, settings.children_hour_usd, everything=every)
    keeper = SessionKeeper(_retention(store, workspace, settings), parts.logger)
    return replace(
        parts,
        curator=EngineCurator(
            engine,
            recall=settings.recall,
            tools=ToolTerms(
                everything=every,
                notes=settings.note_guidance,
                pooled=config.engine.layout == "pooled",
                children=TOOLS if settings.children else (),
            ),
            work=None if files is None else files.work,
            names_answers=settings.ask_cache_misses,
            budget=settings.budget,
            guarded=guarded_sessions(wiring.public_address(store, workspace=workspace)),
        ),
        looker=EngineLooker(engine, _search_in(store, workspace)),
        look=wiring.file_watch(store, workspace=workspace),
        follower=LayerFollower(layers, parts.logger) if layers and settings.memory else None,
        files=files,
        keeper=keeper if settings.retention or settings.quota else None,
        services=_services(engine, workspace, switch),
        children=asked if settings.children else None,
        hand=EngineHand(engine),
        archive=SessionArchive(lambda: closing(wiring.open_for_upkeep(store, workspace=workspace, looks=True))),
    )


def _file_follower(
    store: str | None,
    workspace: Path,
    settings: "GatewaySettings",
    layers: "Sequence[DerivedLayer]",
    logger: "Logger | None",
) -> "FileFollower | None":
    """Return the part that notes the machines of sessions and follows their files; None if both are switched off."""
    from pagein import wiring
    from pagein.gateway.curation.file_follower import FileFollower, FollowTerms
    from pagein.settings.sources import load_config

    if not layers or not (settings.memory or settings.follow_files != "off"):
        return None
    terms = FollowTerms(settings.follow_files, load_config(workspace).engine.excluded)
    return FileFollower(lambda: wiring.open_for_upkeep(store, workspace=workspace), layers[0], terms, logger)


def _services(engine: "Engine", workspace: Path, switch: "Switch") -> "Mapping[str, Handler]":
    """Return pagein's tools over MCP, on the gateway's engine."""
    from pagein.mcp.first_answers import FirstAnswers
    from pagein.mcp.http_endpoint import PATH, HttpEndpoint
    from pagein.mcp.offered_tools import chosen
    from pagein.mcp.tool_answers import ToolAnswers
    from pagein.settings.sources import load_config

    config = load_config(workspace).values
    tools = chosen(config["mcp_tools"], deprecated=config["deprecated_tools"] is True)  # type: ignore[arg-type]
    folders = (str(workspace), *config["mcp_workspaces"])  # type: ignore[misc]
    answers = ToolAnswers(engine, folders, tuple(one.name for one in tools), switch.is_off)
    endpoint = HttpEndpoint(FirstAnswers(tools), answers, has_structure=config["mcp_structured"] is True)
    return {PATH: endpoint.handle}


def _retention(store: str | None, workspace: Path, settings: "GatewaySettings") -> "Apply":
    """Return the retention of a store, which is opened for each look because looks are rare."""
    from pagein.retention import apply_retention

    began = time.time()  # noqa: TID251 - the rim reads the clock
    keep = settings.retention * _DAY if settings.retention else None
    quota = round(settings.quota * _GIGABYTE) if settings.quota else None

    def apply(now: float, go_on: "Callable[[], bool]") -> "Sequence[str]":
        from pagein import wiring

        try:
            kept = wiring.open_for_upkeep(store, workspace=workspace)
        except BadInput:  # nothing is stored yet, or nothing stays
            return ()
        with closing(kept):
            return apply_retention(kept, keep, now, began, quota, go_on).lines

    return apply


def _token() -> str:
    """Return the user's token, or a token for this gateway alone if none can be stored."""
    from pagein.gateway.http.access_token import default_file, ensure_token, fresh

    try:
        return ensure_token(default_file())
    except BadSetting as problem:
        typer.echo(f"warning: {problem}; the links of this gateway are good until it ends", err=True)
        return fresh()


def _search_in(store: str | None, workspace: Path) -> "Search":
    """Return a search over the whole store, opened for each question because questions are rare."""

    def search(text: str) -> "list[HitView]":
        from pagein import archive
        from pagein.gateway.pages.session_views import HITS
        from pagein.model.search_query import Search as Asked

        asked = Asked(pattern=text, limit=HITS, ignore_case=True)
        with archive.open_archive(store, workspace=workspace) as opened:
            hits = opened.search(asked).hits
        return [
            {
                "id": hit.where.id,
                "name": hit.where.nickname or hit.where.path or "",
                "line": hit.match.line,
                "text": hit.match.text,
            }
            for hit in hits
        ]

    return search


def _log_stream(log: Path | None) -> TextIO:
    if log is None:
        return sys.stderr
    try:
        return os.fdopen(os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "a", encoding="utf-8")
    except OSError as problem:
        raise BadSetting(f"--log {log}: {problem.strerror}") from problem
