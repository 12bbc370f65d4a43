"""Read a client's request: its messages, its new part, and its recall tools."""
