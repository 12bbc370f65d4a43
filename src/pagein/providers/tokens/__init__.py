"""How many tokens a text is."""
