"""The results of a replay: figures, cache misses, predictions and pictures."""
