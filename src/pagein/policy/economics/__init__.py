"""Decisions at the prices of a provider's cache: rewrites of the window, cache TTLs, keep-alive requests."""
