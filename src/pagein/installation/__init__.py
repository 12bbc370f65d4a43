"""Entries of pagein in the configuration files of agents: put in, and taken out again."""
