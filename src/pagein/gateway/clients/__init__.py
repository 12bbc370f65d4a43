"""The coding agents that the gateway knows: what to set for each, and how its configuration is read."""
