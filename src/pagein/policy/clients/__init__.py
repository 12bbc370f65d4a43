"""Meaning of the tools of known clients: files read, written and edited, and the layout of results."""
