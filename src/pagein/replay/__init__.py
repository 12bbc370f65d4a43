"""Recorded sessions put through the engine and the baselines, and the bill of each."""
