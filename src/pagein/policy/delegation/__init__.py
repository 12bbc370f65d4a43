"""Decisions on delegated questions: parts of targets, proof of answers, and shares of children."""
