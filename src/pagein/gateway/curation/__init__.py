"""Curation: the engine behind the gateway, within a time limit; session names; keep-alive requests."""
