"""Recall evicted content, and ingest files into the store."""
