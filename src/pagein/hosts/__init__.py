"""Hosts: where agents meet pagein. Each module knows one host and nothing of the others."""
