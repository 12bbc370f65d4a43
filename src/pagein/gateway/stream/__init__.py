"""Model answers on their way to the client: reading, merging, continuing."""
