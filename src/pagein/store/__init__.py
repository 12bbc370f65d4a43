"""Stores for the content of evicted results, objects and journals."""
