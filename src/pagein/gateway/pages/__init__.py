"""The gateway's own pages: dashboard, health, metrics, and the record of calls that they show."""
