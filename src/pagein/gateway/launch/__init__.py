"""Run a coding agent behind a gateway with the same lifetime."""
