"""Curation: the engine behind the gateway, within a time limit."""
