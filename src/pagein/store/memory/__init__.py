"""In-memory store."""
