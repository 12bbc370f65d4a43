"""Evict from the window, keep in the window, and recall into the window."""
