"""Check whether a client's setup reaches the gateway."""
