"""Parse the address of a store: a file, a folder, a store in memory, or a database. Opens nothing."""

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from pagein.errors import BadSetting
from pagein.settings.sources import configured_store

MEMORY: Final = ":memory:"
"""Name of a store in memory."""
ADDRESSES: Final = ("postgresql://", "postgres://")
"""How the addresses of databases begin."""
# Other address forms of libpq (keywords and values), and URLs without slashes. Used as file names they would put passwords into names.
_LIBPQ: Final = re.compile(
    r"\s*(?:(?:host|hostaddr|port|dbname|user|password|passfile|service|options|application_name|connect_timeout|target_session_attrs|ssl\w+)"
    r"\s*=|postgres(?:ql)?:(?!//))",
    re.IGNORECASE,
)


def store_address(store: str | Path | None, workspace: str | Path) -> str | Path | None:
    """Return the named store, otherwise the configured store; None for the workspace's own store.

    Raises BadSetting for an unknown kind of address.
    """
    named = configured_store(workspace) if store is None else store
    if not isinstance(named, str | os.PathLike | None):
        raise BadSetting(f"a store is named by a path or an address, not {named!r}")
    if isinstance(named, str) and _LIBPQ.match(named):
        # The value is not shown: an address may contain a password.
        raise BadSetting(
            "a database is named by its address, postgresql://user@host:port/name, and not by keywords and values (host=... user=...); "
            "a file whose name begins so is named with its folder, as in ./host=x"
        )
    if isinstance(named, str) and "://" in named and not named.startswith(ADDRESSES):
        kind = named.partition("://")[0]
        raise BadSetting(f"there are no stores at {kind}:// addresses; name a file, a folder or postgresql://...")
    is_file = store is None and isinstance(named, str) and named != MEMORY and not named.startswith(ADDRESSES)
    return Path(named).expanduser() if is_file and isinstance(named, str) else named


def without_password(address: str) -> str:
    """Return the address of a database as it may be shown."""
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "password"]
    return parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=urlencode(query)).geturl()
