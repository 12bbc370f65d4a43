"""Models by name, with their abilities and token prices by date."""
