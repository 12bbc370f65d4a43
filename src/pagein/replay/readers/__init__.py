"""Readers of recorded sessions, one module per format, and the detection that chooses among them."""

from pagein.replay.readers.detection import read
from pagein.replay.readers.discovery import Found, discover
from pagein.replay.readers.source import Skipped, Source
from pagein.replay.readers.source_paths import find, snapshots_beside

__all__ = ["Found", "Skipped", "Source", "discover", "find", "read", "snapshots_beside"]
