"""Recorded sessions of other agents as journals in the store: intake, the files seen before, and the watch
(docs/memory.md).
"""
