"""Provider rules as dated data: request formats, caches, token counts and prices, with pure functions."""
