"""Readers of recorded sessions, one module per format, and the detection of the format."""

from pagein.replay.readers.detection import read_source
from pagein.replay.readers.discovery import AGENTS, FoundSession, discover
from pagein.replay.readers.source import SkippedSource, Source
from pagein.replay.readers.source_paths import SessionFile, find, session_files, snapshots_beside, sources_of

__all__ = [
    "AGENTS",
    "FoundSession",
    "SessionFile",
    "SkippedSource",
    "Source",
    "discover",
    "find",
    "read_source",
    "session_files",
    "snapshots_beside",
    "sources_of",
]
