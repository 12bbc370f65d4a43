"""Render the bytes of a request: splice pagein's changes into the client's bytes, and check the result."""
