"""Readers of recorded sessions, one module per format, and the detection that chooses among them."""
