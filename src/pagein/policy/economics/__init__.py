"""At the prices of a provider's cache: whether a rewrite of the window pays, the cache TTL, keep-alive requests."""
