"""Where a store is, when nobody says: in the user's data folder, one file per workspace."""

import hashlib
import re
from pathlib import Path
from typing import Final

SUFFIX: Final = ".pagein"
_DIGITS: Final = 12


def default_path(workspace: str) -> Path:
    """The file of this workspace's store. Nothing is made."""
    # imported here: `pagein` itself starts without it
    from platformdirs import user_data_path

    return user_data_path("pagein", appauthor=False) / "stores" / store_name(workspace)


def store_name(workspace: str) -> str:
    """A file name that tells the workspace to people, and tells workspaces apart by a hash of their path."""
    last = re.split(r"[\\/]", workspace.rstrip("\\/"))[-1]
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-.")[:40] or "workspace"
    digest = hashlib.sha256(workspace.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{label}-{digest}{SUFFIX}"
