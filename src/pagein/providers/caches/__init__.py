"""Cache models, with a module for each caching method of the providers; a plan of breakpoints; the cache doctor."""
