"""Frozen values without clock, file or network access. Every other package of pagein exchanges these values."""
