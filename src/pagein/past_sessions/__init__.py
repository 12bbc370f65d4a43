"""Recorded sessions of other agents as journals in the store: intake, the files seen so far, and the watch (docs/memory.md)."""
