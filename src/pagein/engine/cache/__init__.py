"""Where a request's prompt prefix ends, where its cache breakpoints stand, and for how long the cache is asked to keep it."""
