"""Definitions as other programs find them, to compare with pagein's."""
