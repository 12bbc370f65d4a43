"""Embedded store: a single SQLite file."""
