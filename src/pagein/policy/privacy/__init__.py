"""What must not be stored, and how it is taken out of a text."""
