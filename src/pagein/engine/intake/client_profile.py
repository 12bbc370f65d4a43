"""The client behind a request, by the tools that it offers its model."""

from functools import lru_cache

from pagein.engine.intake.message_chain import Transcript
from pagein.model.json_text import decode_json
from pagein.policy.clients.added_tools import adds_shell_of_codex
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.profiles import CODEX, OTHER, profile_of, tools_of
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.request_body import Envelope


def profile_in(envelope: Envelope, script: Transcript | None = None) -> Profile | None:
    """Return the client profile of a request's tools; None without tools.

    script: the request's messages, if tools in its input count as well.
    """
    told = _profile(bytes(envelope.fields.get("tools", b"[]")), envelope.api)
    added = () if script is None or told not in (None, OTHER) else script.items[: script.head + 1]
    return CODEX if any(adds_shell_of_codex(item.raw) for item in added) else told


@lru_cache(maxsize=64)
def _profile(tools: bytes, api: Api) -> Profile | None:
    """Return the client profile of a list of tools, cached because tools rarely change."""
    offered = tools_of(format_named(api).tools.definitions(decode_json(tools)))
    return profile_of(offered) if offered else None
