"""Search over a whole store, and its trigram index."""
