"""Run a coding agent with a gateway that starts before it and ends after it."""
