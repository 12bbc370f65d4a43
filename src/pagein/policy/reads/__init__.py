"""Answers to file reads, based on the model's knowledge of the file."""
