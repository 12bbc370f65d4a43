"""The prompt cache of a provider: prompt prefix, prompt layout, cache breakpoints, cache TTL and forecast."""
