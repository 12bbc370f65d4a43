"""Add pagein's entries to the configuration files of agents, and remove them again."""
