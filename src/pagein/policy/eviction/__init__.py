"""Choice of the results to evict, the time to evict, and the results to keep."""
