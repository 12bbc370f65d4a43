"""The tool `read` with its modes: arguments, the modes themselves, and the answer to a call."""
