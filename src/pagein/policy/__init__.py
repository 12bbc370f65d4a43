"""Decisions: (state, facts) -> decision. A policy asks; it never fetches, waits or remembers."""
