"""Frozen values without clock, file or network access. The packages of pagein exchange data in this form."""
