"""What a replay found: figures, cache misses, predictions and pictures."""
