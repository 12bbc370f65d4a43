"""Each peer in an environment of its own, with exactly the packages of its lock."""

import hashlib
import re
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.arms import Peer

PATIENCE = 1800  # seconds for one peer; the largest is a gigabyte


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment that is ready. python: its interpreter. home: where the peer may write."""

    python: Path
    home: Path


@dataclass(frozen=True, slots=True)
class NotInstalled:
    """A peer that could not be had, and why. It is reported; its rows stay empty."""

    why: str


def install(peer: Peer, folder: Path) -> Installed | NotInstalled:
    """Install a peer below `folder`, unless this very lock is installed there already. Packages come as wheels, checked by hash."""
    place = folder / peer.name
    stamp, home = place / "installed", place / "home"
    python = place / "venv" / "bin" / "python"
    wanted = hashlib.sha256(peer.lock.read_bytes()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return Installed(python, home)
    home.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    try:
        venv.create(place / "venv", clear=True)
        done = subprocess.run(
            _command(python, peer.lock), capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.SubprocessError) as problem:
        return NotInstalled(f"{type(problem).__name__}: {problem}"[:200])
    if done.returncode != 0:
        return NotInstalled(_last_error(done.stderr))
    stamp.write_text(wanted)
    return Installed(python, home)


def _command(python: Path, lock: Path) -> list[str]:
    """Our own pip installs into it, so that it holds nothing but the peer."""
    own = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    return [sys.executable, "-m", "pip", "--python", str(python), "install", *own, "-r", str(lock)]


def _last_error(text: str) -> str:
    """The last word of pip, without addresses: where packages come from is the business of who runs this."""
    lines = [line for line in text.splitlines() if line.startswith("ERROR")] or text.splitlines()[-1:]
    return re.sub(r"\S*://\S*", "(address)", lines[-1])[:200] if lines else f"pip failed under {sys.version.split()[0]}"
