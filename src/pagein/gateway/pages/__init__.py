"""The gateway's own pages: dashboard, health and metrics, with the call history that feeds them."""
