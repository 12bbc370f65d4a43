"""What a client's request says: its messages, its new part, and the recall tools that it is offered."""
