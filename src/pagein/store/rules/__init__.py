"""Rules shared by every store, without a database."""
