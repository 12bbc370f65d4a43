"""What a rewrite of the window costs and saves, at the prices of a provider's cache."""
