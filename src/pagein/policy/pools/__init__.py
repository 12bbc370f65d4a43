"""Pools: the objects known to a session, and the active ones, whose content stands in the window."""
