"""Pools: which objects a session knows, which of them its window shows whole, and what changes that."""
