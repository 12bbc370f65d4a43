"""Rules that all stores follow, without a database."""
