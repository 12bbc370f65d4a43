"""Default location of a store: a file per workspace in the user's data folder."""

import hashlib
import re
from pathlib import Path
from typing import Final

SUFFIX: Final = ".pagein"
_DIGITS: Final = 12


def default_path(workspace: str) -> Path:
    """Return the default path of a workspace's store. Creates nothing."""
    # imported here so that `import pagein` stays cheap
    from platformdirs import user_data_path

    return user_data_path("pagein", appauthor=False) / "stores" / store_name(workspace)


def store_name(workspace: str) -> str:
    """Return a file name with the workspace's last folder for people, and a hash of the full path for uniqueness."""
    last = re.split(r"[\\/]", workspace.rstrip("\\/"))[-1]
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-.")[:40] or "workspace"
    digest = hashlib.sha256(workspace.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{label}-{digest}{SUFFIX}"
