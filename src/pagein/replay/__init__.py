"""Replay recorded sessions through the engine and the baselines, and bill each of them."""
