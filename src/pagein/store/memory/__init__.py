"""The store in memory, for tests and replays."""
