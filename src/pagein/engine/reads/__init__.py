"""File texts that the model has seen, and the shorter answers that they allow for new reads."""
