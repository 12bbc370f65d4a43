"""Read a client's request: messages, new part, recall tools."""
