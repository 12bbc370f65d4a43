"""In-memory store, for tests and replays."""
