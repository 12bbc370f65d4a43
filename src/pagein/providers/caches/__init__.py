"""Cache models, one module per way in which providers cache."""
