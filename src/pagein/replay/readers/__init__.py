"""Readers of recorded sessions, one module per format, and the detection that chooses among them."""

from pagein.replay.readers.detection import read
from pagein.replay.readers.discovery import Found, discover
from pagein.replay.readers.finding import find, snapshots_beside
from pagein.replay.readers.source import Skipped, Source

__all__ = ["Found", "Skipped", "Source", "discover", "find", "read", "snapshots_beside"]
