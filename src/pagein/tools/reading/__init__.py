"""The tool `read` with its modes: arguments, the modes themselves, and what a call is answered with."""
