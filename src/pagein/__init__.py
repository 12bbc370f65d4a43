"""pagein: virtual memory for the context window of coding agents."""

__version__ = "0.1.0"
