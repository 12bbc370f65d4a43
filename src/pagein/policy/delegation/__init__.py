"""Decisions on delegated questions: how targets are split, what an answer proves, and what children share."""
