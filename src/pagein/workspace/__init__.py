"""The files an agent works on: how they are named, and how they are read."""
