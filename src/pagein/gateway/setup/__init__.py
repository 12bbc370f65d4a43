"""Whether a client's setup reaches the gateway."""
