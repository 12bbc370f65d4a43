"""The store for teams: one schema of a PostgreSQL database."""
