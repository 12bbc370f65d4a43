"""Proof of each marker and diff against the text in the model's window."""
