"""File texts that the model has seen, and the shorter answers to new reads."""
