"""PostgreSQL store for teams: a single schema of a database."""
