"""Read a client's request: its messages, its new part, and the recall tools that the model gets."""
