"""Token counts of texts."""
