"""How a recall tool finds a part of a text."""
