"""Delegation: child models answer questions about stored objects, within limits of time, number and money."""
