"""Build the bytes to send: splice pagein's changes into the client's bytes, check the result, choose a fallback after a failure."""
