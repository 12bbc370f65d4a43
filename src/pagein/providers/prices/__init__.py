"""Models by name, what they can do and what their tokens cost, by date."""
